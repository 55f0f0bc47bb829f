//! Points and velocities in the plane.

/// A point in the plane, in metres. Both coordinates are finite; they may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Position {
    /// Metres to the right of the origin.
    pub x_m: f64,
    /// Metres up from the origin.
    pub y_m: f64,
}

impl Position {
    /// The point (`x_m`, `y_m`).
    #[must_use]
    pub const fn new(x_m: f64, y_m: f64) -> Self {
        Self { x_m, y_m }
    }

    /// Returns whether both coordinates are finite.
    #[must_use]
    pub const fn is_finite(self) -> bool {
        self.x_m.is_finite() && self.y_m.is_finite()
    }

    /// Distance to `other` in m.
    #[must_use]
    pub fn distance_m(self, other: Self) -> f64 {
        // The square root, unlike other functions of the standard library, is exact by IEEE 754 on every platform.
        self.distance_squared_m2(other).sqrt()
    }

    /// Square of the distance to `other` in m².
    #[must_use]
    pub fn distance_squared_m2(self, other: Self) -> f64 {
        let (dx, dy) = (other.x_m - self.x_m, other.y_m - self.y_m);
        dx * dx + dy * dy
    }

    /// The point at `share` of the way to `other`: 0 is here, 1 is there.
    #[must_use]
    pub fn towards(self, other: Self, share: f64) -> Self {
        Self {
            x_m: self.x_m + (other.x_m - self.x_m) * share,
            y_m: self.y_m + (other.y_m - self.y_m) * share,
        }
    }
}

/// A velocity in the plane, in metres per second.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Velocity {
    /// Velocity to the right.
    pub x_mps: f64,
    /// Up.
    pub y_mps: f64,
}

impl Velocity {
    /// Standing still.
    pub const ZERO: Self = Self { x_mps: 0.0, y_mps: 0.0 };

    /// Speed in m/s.
    #[must_use]
    pub fn speed_mps(self) -> f64 {
        (self.x_mps * self.x_mps + self.y_mps * self.y_mps).sqrt()
    }
}
