//! `[routing.dsr]`.

use super::super::super::keys;
use super::super::super::schema::Section;
use super::super::{jitter, seconds};
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_radio::mac::config::FirstAccess;
use hopline_routing::dsr::Config;
use hopline_routing::dsr::config::{
    CachedReplies, GratuitousReplies, NoCache, PathCache, RouteCache, SourceRoutes, Tap,
};
use std::num::{NonZeroU8, NonZeroU16};

/// Keys that say something of the cache, and nothing without it.
const CACHE_KEYS: [&str; 10] = [
    "learned_directions",
    "unsalvageable_packets",
    "failed_control_packets",
    "cache_paths",
    "cache_timeout_s",
    "tap",
    "cached_replies",
    "cached_reply_delay_s",
    "gratuitous_replies",
    "gratuitous_holdoff_s",
];
/// Keys that say something only without it.
const NO_CACHE_KEYS: [&str; 4] =
    ["uncached_relays", "uncached_searches", "uncached_salvage", "uncached_jitter"];

pub(super) fn config(section: Section<'_>, first_access: Option<FirstAccess>) -> Result<Config, Problem> {
    let mut config = section.get(keys::dsr::PRESET)();
    config.cache = cache(section, config.cache)?;
    apply_choices(&mut config, section);
    apply_times(&mut config, section);
    config.originated_jitter =
        jitter::of(&section, "originated_jitter_s", config.originated_jitter, first_access);
    apply_numbers(&mut config, section);
    Ok(config)
}

fn apply_choices(config: &mut Config, section: Section<'_>) {
    section.set_if_given(keys::dsr::TARGET_REPLIES, &mut config.target_replies);
    section.set_if_given(keys::dsr::QUEUED_PACKETS, &mut config.queued_packets);
    section.set_if_given(keys::dsr::NEIGHBOURS_ASKED, &mut config.neighbour_queries);
    section.set_if_given(keys::dsr::DEAD_LINK, &mut config.link_removal);
    config.source_routes = match section.word("source_routes") {
        Some("announced") => Config::ns2().source_routes,
        Some(_in_each) => SourceRoutes::InEach,
        None => config.source_routes,
    };
}

fn apply_times(config: &mut Config, section: Section<'_>) {
    let times = [
        ("broadcast_jitter_s", &mut config.broadcast_jitter),
        ("reply_jitter_s", &mut config.reply_jitter),
        ("gratuitous_jitter_s", &mut config.gratuitous_jitter),
        ("release_spacing_s", &mut config.release_spacing),
        ("buffer_time_s", &mut config.buffer_time),
        ("request_period_s", &mut config.request_period),
        ("max_request_period_s", &mut config.max_request_period),
    ];
    for (key, field) in times {
        *field = seconds(&section, key).unwrap_or(*field);
    }
    let patience = seconds(&section, "nonpropagating_timeout_s").or(config.neighbour_query_timeout);
    config.neighbour_query_timeout = match section.word("nonpropagating_first") {
        Some("off") => None,
        _ => patience,
    };
}

fn apply_numbers(config: &mut Config, section: Section<'_>) {
    let bytes = [
        ("max_path", &mut config.max_path),
        ("request_backoff", &mut config.request_backoff),
        ("max_request_retries", &mut config.max_request_retries),
    ];
    for (key, field) in bytes {
        *field = byte(section, key).and_then(NonZeroU8::new).unwrap_or(*field);
    }
    config.max_salvage = byte(section, "max_salvage").unwrap_or(config.max_salvage);
    config.buffer_packets = count(section, "buffer_packets").unwrap_or(config.buffer_packets);
}

fn cache(section: Section<'_>, preset: RouteCache) -> Result<RouteCache, Problem> {
    let off = section.word("cache") == Some("off");
    let idle = |keys: &[&'static str]| keys.iter().copied().find(|key| section.has(key));
    if off && let Some(key) = idle(&CACHE_KEYS) {
        return Err(Problem::new(format!("{key} is of the route cache, and the cache is off"))
            .at(section.origin_of(key))
            .help("leave it out, or set cache = \"paths\""));
    }
    if !off && let Some(key) = idle(&NO_CACHE_KEYS) {
        return Err(Problem::new(format!("{key} is for the cache off, and there is a cache"))
            .at(section.origin_of(key))
            .help("leave it out, or set cache = \"off\"; with a cache, packets are given the routes that it holds"));
    }
    Ok(match preset {
        RouteCache::Paths(paths) if !off => RouteCache::Paths(path_cache(section, paths)),
        _ => RouteCache::Off(uncached(section)),
    })
}

fn uncached(section: Section<'_>) -> NoCache {
    let mut uncached = NoCache::DOOR;
    section.set_if_given(keys::dsr::UNCACHED_RELAYS, &mut uncached.relays);
    section.set_if_given(keys::dsr::UNCACHED_SEARCHES, &mut uncached.searches);
    section.set_if_given(keys::dsr::UNCACHED_SALVAGE, &mut uncached.salvage);
    section.set_if_given(keys::dsr::UNCACHED_JITTER, &mut uncached.jitter);
    uncached
}

fn path_cache(section: Section<'_>, preset: PathCache) -> PathCache {
    let delay = match preset.cached_replies {
        CachedReplies::After { per_hop } => per_hop,
        CachedReplies::Off => Duration::ZERO,
    };
    let holdoff = match preset.gratuitous_replies {
        GratuitousReplies::On { holdoff } => holdoff,
        GratuitousReplies::Off => Duration::ZERO,
    };
    PathCache {
        capacity: count(section, "cache_paths").unwrap_or(preset.capacity),
        timeout: seconds(&section, "cache_timeout_s").unwrap_or(preset.timeout),
        learnt_directions: section.get(keys::dsr::WAYS_LEARNT).unwrap_or(preset.learnt_directions),
        unsalvageable_packets: section.get(keys::dsr::STRANDED).unwrap_or(preset.unsalvageable_packets),
        failed_control: section.get(keys::dsr::LOST_CONTROL).unwrap_or(preset.failed_control),
        tap: if section.word("tap") == Some("off") { Tap::Off } else { preset.tap },
        cached_replies: match section.word("cached_replies") {
            Some("off") => CachedReplies::Off,
            _ => CachedReplies::After { per_hop: seconds(&section, "cached_reply_delay_s").unwrap_or(delay) },
        },
        gratuitous_replies: match section.word("gratuitous_replies") {
            Some("off") => GratuitousReplies::Off,
            _ => GratuitousReplies::On {
                holdoff: seconds(&section, "gratuitous_holdoff_s").unwrap_or(holdoff),
            },
        },
    }
}

fn byte(section: Section<'_>, key: &str) -> Option<u8> {
    section.integer_as::<u8>(key)
}

fn count(section: Section<'_>, key: &str) -> Option<NonZeroU16> {
    section.integer(key).and_then(|n| u16::try_from(n).ok()).and_then(NonZeroU16::new)
}
