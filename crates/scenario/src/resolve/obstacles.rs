//! `[[obstacle]]`.

use super::super::keys;
use super::super::schema::Section;
use hopline_config::source::Problem;
use hopline_radio::mobility::Position;
use hopline_radio::phy::obstacles::Obstacle;

const RECTANGLE_KEYS: [&str; 4] = ["x_m", "y_m", "width_m", "height_m"];

/// Returns the obstacles between the nodes.
pub(super) fn resolve(scenario: Section<'_>) -> Result<Vec<Obstacle>, Problem> {
    scenario.sections("obstacle").iter().map(obstacle).collect()
}

fn obstacle(section: &Section<'_>) -> Result<Obstacle, Problem> {
    let corners = if section.has("corners") { polygon(section)? } else { rectangle(section)? };
    Ok(Obstacle { corners, loss_db: section.get(keys::obstacle::LOSS_DB) })
}

fn polygon(section: &Section<'_>) -> Result<Vec<Position>, Problem> {
    if let Some(key) = RECTANGLE_KEYS.into_iter().find(|key| section.has(key)) {
        return Err(Problem::new(format!("`{key}` of an obstacle with corners"))
            .at(section.origin_of(key))
            .help("a rectangle has x_m, y_m, width_m and height_m, anything else corners"));
    }
    let corner = |at: &Section<'_>| Position::new(at.get(keys::place::X_M), at.get(keys::place::Y_M));
    let corners: Vec<Position> = section.sections("corners").iter().map(corner).collect();
    if corners.len() < 2 {
        return Err(Problem::new(format!("an obstacle of {} corners", corners.len()))
            .at(section.origin_of("corners"))
            .help("a wall has two, a building three or more"));
    }
    Ok(corners)
}

fn rectangle(section: &Section<'_>) -> Result<Vec<Position>, Problem> {
    let side = |key: &str| {
        section.number(key).ok_or_else(|| {
            Problem::new(format!("an obstacle without `{key}`"))
                .at(section.origin)
                .help("add x_m, y_m, width_m and height_m of a rectangle, or corners")
        })
    };
    let [west, south, width, height] = [side("x_m")?, side("y_m")?, side("width_m")?, side("height_m")?];
    let (east, north) = (west + width, south + height);
    Ok([(west, south), (east, south), (east, north), (west, north)].map(|(x, y)| Position::new(x, y)).into())
}
