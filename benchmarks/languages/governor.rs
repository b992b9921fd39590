//! Measures the crate governor under loads of the Go benchmarks, and prints the times of a call in
//! nanoseconds, in the order of the calls of `measure` in `main`.
//!
//! usage: governor MILLISECONDS, for each load

use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The calls between two uses of the counter that the threads share.
const BATCH: usize = 250;
const MANY: usize = 100_000;
const NEW: usize = 1_000_000;
const ANY: usize = usize::MAX;

fn quota(burst: u32, interval: Duration) -> Quota {
    let burst = NonZeroU32::new(burst).unwrap();
    Quota::with_period(interval).unwrap().allow_burst(burst)
}

fn name(i: usize) -> String {
    format!("client-{i:07}")
}

/// The keys from first on in a random order, each a new string, repeated up to a batch.
fn names(first: usize, count: usize, mut seed: u64) -> Vec<String> {
    let mut order: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        order.swap(i, (seed >> 33) as usize % (i + 1));
    }
    let repeated = order.iter().cycle().take(count.max(BATCH));
    repeated.map(|i| name(first + i)).collect()
}

/// A limiter that has decided once on each of the keys.
fn filled(quota: Quota, first: usize, count: usize) -> DefaultKeyedRateLimiter<String> {
    let limiter = RateLimiter::keyed(quota);
    for key in names(first, count, 3).iter().take(count) {
        assert!(limiter.check_key(key).is_ok(), "the first call of a key was refused");
    }
    limiter
}

/// Makes calls until the time is over, or `most` calls, and prints the time of one.
fn measure(
    time: Duration,
    threads: usize,
    most: usize,
    keys: &[String],
    granted: bool,
    allow: impl Fn(&String) -> bool + Sync,
) {
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while start.elapsed() < time && next.load(Ordering::Relaxed) < most {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed) % keys.len();
                    let grants = keys[first..first + BATCH].iter().filter(|key| allow(key)).count();
                    assert_eq!(grants, if granted { BATCH } else { 0 });
                }
            });
        }
    });
    let calls = next.load(Ordering::Relaxed);
    print!("{:.1} ", start.elapsed().as_nanos() as f64 / calls as f64);
}

fn main() {
    let argument = std::env::args().nth(1).expect("usage: governor MILLISECONDS");
    let time = Duration::from_millis(argument.parse().expect("milliseconds"));
    let generous = quota(1_000_000_000, Duration::from_nanos(10));
    let daily = quota(1, Duration::from_secs(24 * 60 * 60));
    let modest = quota(10, Duration::from_secs(60));

    let one = names(0, 1, 1);
    let keyed = filled(generous, 0, 1);
    measure(time, 1, ANY, &one, true, |key| keyed.check_key(key).is_ok());
    let keyed = filled(daily, 0, 1);
    measure(time, 1, ANY, &one, false, |key| keyed.check_key(key).is_ok());
    measure(time, 64, ANY, &one, false, |key| keyed.check_key(key).is_ok());
    let keyed = filled(generous, 0, MANY);
    measure(time, 1, ANY, &names(0, MANY, 1), true, |key| keyed.check_key(key).is_ok());
    let keyed = filled(modest, NEW, MANY);
    measure(time, 1, NEW, &names(0, NEW, 1), true, |key| keyed.check_key(key).is_ok());
    let direct: DefaultDirectRateLimiter = RateLimiter::direct(generous);
    measure(time, 1, ANY, &one, true, |_| direct.check().is_ok());
    println!();
}
