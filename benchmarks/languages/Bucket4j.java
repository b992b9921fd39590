import io.github.bucket4j.Bucket;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.*;
import java.util.stream.*;

/**
 * Measures Bucket4j under loads of the Go benchmarks, and prints the times of a call in
 * nanoseconds, in the order of the calls of measure in loads.
 * <p>usage: Bucket4j MILLISECONDS, for each load
 */
final class Bucket4j {
  static final int BATCH = 250; // calls between two uses of the counter that the threads share
  static final int MANY = 100_000, NEW = 1_000_000;
  static final long ANY = Long.MAX_VALUE;

  static Bucket bucket(long capacity, long tokens, Duration period) {
    var builder = Bucket.builder().withNanosecondPrecision();
    builder.addLimit(limit -> limit.capacity(capacity).refillGreedy(tokens, period));
    return builder.build();
  }

  /** Decides on one call and looks at the whole answer, so that it must be computed. */
  static boolean allow(Bucket bucket) {
    var answer = bucket.tryConsumeAndReturnRemaining(1);
    if (answer.isConsumed()) return answer.getRemainingTokens() >= 0;
    return answer.getNanosToWaitForRefill() <= 0;
  }

  /** The keys from first on in a random order, each a new string, repeated up to a batch. */
  static String[] names(int first, int count, int seed) {
    var order = IntStream.range(first, first + count).boxed().collect(Collectors.toList());
    Collections.shuffle(order, new Random(seed));
    return IntStream.range(0, Math.max(count, BATCH))
        .mapToObj(i -> String.format("client-%07d", order.get(i % count)))
        .toArray(String[]::new);
  }

  /** A limiter that has decided once on each of the keys. */
  static Predicate<String> filled(Supplier<Bucket> bucket, int first, int count) {
    var buckets = new ConcurrentHashMap<String, Bucket>();
    Predicate<String> limiter = key -> {
      Bucket found = buckets.get(key); // takes no lock
      return allow(found != null ? found : buckets.computeIfAbsent(key, k -> bucket.get()));
    };
    if (!Arrays.stream(names(first, count, 3)).limit(count).allMatch(limiter)) {
      throw new AssertionError("the first call of a key was refused");
    }
    return limiter;
  }

  /** Makes calls until the time is over, or most calls, and returns the time of one. */
  static double measure(
      long time, int threads, long most, String[] keys, boolean granted, Predicate<String> limiter)
      throws Exception {
    var next = new AtomicLong();
    var pool = Executors.newFixedThreadPool(threads);
    System.gc(); // collects the garbage of filling, and of the load before
    long start = System.nanoTime();
    Callable<Void> calls = () -> {
      while (System.nanoTime() - start < time && next.get() < most) {
        int first = (int) (next.getAndAdd(BATCH) % keys.length);
        for (int i = first; i < first + BATCH; i++) {
          if (limiter.test(keys[i]) != granted) throw new AssertionError("a wrong answer");
        }
      }
      return null;
    };
    for (var thread : pool.invokeAll(Collections.nCopies(threads, calls))) thread.get();
    double ns = System.nanoTime() - start;
    pool.shutdown();
    return ns / next.get();
  }

  static String loads(long time) throws Exception {
    Supplier<Bucket> generous = () -> bucket(1_000_000_000, 100_000_000, Duration.ofSeconds(1));
    Supplier<Bucket> modest = () -> bucket(10, 1, Duration.ofMinutes(1));
    String[] one = names(0, 1, 1);
    var refusing = filled(() -> bucket(1, 1, Duration.ofDays(1)), 0, 1);
    Bucket direct = generous.get();
    return DoubleStream.of(
            measure(time, 1, ANY, one, true, filled(generous, 0, 1)),
            measure(time, 1, ANY, one, false, refusing),
            measure(time, 64, ANY, one, false, refusing),
            measure(time, 1, ANY, names(0, MANY, 1), true, filled(generous, 0, MANY)),
            measure(time, 1, NEW, names(0, NEW, 1), true, filled(modest, NEW, MANY)),
            measure(time, 1, ANY, one, true, key -> allow(direct)))
        .mapToObj(Double::toString)
        .collect(Collectors.joining(" "));
  }

  public static void main(String[] arguments) throws Exception {
    long time = Long.parseLong(arguments[0]) * 1_000_000;
    loads(time); // compiles
    System.out.println(loads(time));
  }
}
