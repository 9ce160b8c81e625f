// Calls every function of the kernel for many odd sizes, on memory that ends where the data ends, so
// that AddressSanitizer and UBSan see every step beside it. With an argument, one buffer is too
// short on purpose.

#include KERNEL

#include <cstdio>
#include <vector>

namespace {

uint64_t state = 1;

template <class T> std::vector<T> numbers(int64_t count) {
  std::vector<T> values(count);
  for (T& value : values) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    value = T(int64_t(state >> 40) - (1 << 23)) / T(1 << 23);
  }
  values.shrink_to_fit();
  return values;
}

typedef REAL T;

void run(Task t, bool indexed, bool masked, bool joined, bool shared, int64_t missing) {
  const int64_t D = t.inputs, H = t.hidden, O = t.outputs, M = t.members, used =
      (t.front ? D * D + D : 0) + D * H + H + H * O + O;
  t.columns = rounded_up(used, 32);
  t.height = indexed ? t.rows + 3 : t.rows;
  t.batch = t.rows, t.rows *= joined ? 2 : 1;
  const auto params = numbers<T>(M * t.columns);
  t.x_stride = shared ? 0 : t.height * (D - joined);
  const int64_t y_stride = shared ? 0 : t.height;
  const auto x = numbers<T>((shared ? 1 : M) * t.height * (D - joined) - missing);
  const auto y = numbers<T>((shared ? 1 : M) * t.height), slope = numbers<T>(M * t.rows * O);
  const auto masks = numbers<T>(masked ? M * t.batch * H : 0);
  const auto column = numbers<T>(joined ? M * t.rows : 0);
  std::vector<T> weights(M * t.height, T(1));
  std::vector<int64_t> index(indexed ? M * t.batch : 0);
  for (size_t i = 0; i < index.size(); ++i) index[i] = int64_t(i * 7) % t.height;
  t.params = params.data(), t.x = x.data();
  t.index = indexed ? index.data() : nullptr;
  t.masks = masked ? masks.data() : nullptr;
  t.index_stride = t.masks_stride = t.batch;
  t.column = joined ? column.data() : nullptr;
  t.column_stride[0] = t.rows, t.column_stride[1] = t.batch, t.column_stride[2] = 1;

  std::vector<T> z(M * t.rows * O), grad(M * t.columns), loss(M), next(M);
  pi3nn_forward(&t, z.data());
  pi3nn_backward(&t, slope.data(), grad.data());
  const std::vector<T> own(M, T(0.5)), none(M);
  const auto uniform = numbers<T>(M * t.batch);
  Loss l = {};
  l.y = y.data(), l.y_stride = y_stride, l.weights = weights.data(), l.loss = loss.data(), l.next = next.data();
  l.state[0] = l.state[1] = l.state[2] = own.data(), l.state[3] = none.data();
  const int64_t outputs[] = {1, O, 2, 3, 4, 1, O % 2 ? O : 0};
  const int64_t kinds = 7;
  for (l.kind = 0; l.kind < kinds; ++l.kind) {
    if (outputs[l.kind] != O) continue;
    for (double first : {-1.0, 0.0, 0.5}) {
      for (double& constant : l.constants) constant = first;
      const bool drawn = l.kind == 1 && first < 0;
      l.uniform = drawn ? uniform.data() : nullptr, l.uniform_stride = t.batch;
      pi3nn_loss_and_gradient(&t, &l, grad.data());
    }
  }

  std::vector<T> mean(grad.size()), square(grad.size()), update(grad.size());
  const std::vector<T> some(M, T(0.1));
  const std::vector<double> rates(3 * M, 0.01);
  const std::vector<int64_t> spans = {0, D * H, D * H + H, D * H + H + H * O};
  Rule rule = {};
  rule.members = M, rule.columns = t.columns, rule.spans = t.front ? 0 : 2, rule.span = spans.data();
  rule.beta1 = 0.9, rule.beta2 = 0.999, rule.eps = 1e-8, rule.limit = 1e9, rule.correction = 1;
  rule.params = params.data(), rule.grad = grad.data(), rule.update = update.data();
  rule.mean = mean.data(), rule.square = square.data();
  rule.l1 = rule.l2 = rule.decay = some.data();
  rule.rate = rates.data(), rule.rate_stride = 3;
  const std::vector<double> lost(M, 0.01);
  const auto kernels = numbers<T>(t.columns);
  std::vector<T> average(masked ? grad.size() : 0);
  rule.shrink = indexed ? lost.data() : nullptr, rule.kernels = kernels.data();
  rule.average = masked ? average.data() : nullptr, rule.old_share = 0.9;
  for (int64_t adam : {0, 1}) {
    rule.adam = adam;
    pi3nn_optimise(&rule, loss.data());
  }

  const int64_t steps = 3;  // as many as there are rates
  const std::vector<int64_t> keys(steps * 2 * M, 0xffffffff), dropped(M, 6554);
  std::vector<T> hashed(M * t.rows * H);
  pi3nn_masks(keys.data(), dropped.data(), M, t.rows * H, hashed.data());

  std::vector<T> moved = params, first = own, filled(masks.size());
  std::vector<int64_t> indices;
  for (int64_t step = 0; step < steps; ++step)
    indices.insert(indices.end(), index.begin(), index.end());
  indices.shrink_to_fit();
  const auto columns = numbers<T>(steps * column.size()), drawn = numbers<T>(steps * M * t.batch);
  const std::vector<double> factors(3 * steps, 1.0);
  Course course = {};
  course.steps = steps, course.index_step = index.size(), course.uniform_step = M * t.batch;
  course.column_step = column.size(), course.factors = factors.data();
  if (masked) course.keys = keys.data(), course.dropped = dropped.data();
  std::vector<T> best(M, T(1e9)), waited(M), kept = params;
  course.best = best.data(), course.waited = waited.data(), course.best_params = kept.data();
  course.patience = 2;
  t.params = rule.params = moved.data();
  t.index = indexed ? indices.data() : nullptr;
  t.masks = masked ? filled.data() : nullptr;
  t.column = joined ? columns.data() : nullptr;
  l.state[0] = first.data();
  for (l.kind = 0; l.kind < kinds; ++l.kind) {
    if (outputs[l.kind] != O) continue;
    l.uniform = l.kind == 1 ? drawn.data() : nullptr;
    course.moves = l.kind == 4;
    pi3nn_make_steps(&course, &t, &l, &rule);
  }
}

}  // namespace

int main(int count, char**) {
  int cases = 0;
  for (int64_t inputs : {1, 4, 13})
    for (int64_t hidden : {1, 7, 16, 33, 75})
      for (int64_t outputs : {1, 2, 3, 4})
        for (int64_t rows : {1, 8, 37})
          for (int64_t flags = 0; flags < 32; ++flags) {
            Task t = {};
            t.members = 2, t.inputs = inputs, t.hidden = hidden, t.outputs = outputs, t.rows = rows;
            t.front = flags & 1, t.tanh = flags >> 1 & 1;
            run(t, flags & 4, flags & 8, flags & 16 && outputs < 3 && inputs > 1, rows == 8,
                count > 1);
            ++cases;
          }
  std::printf("%d cases\n", cases);
}
