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

void run(Task t, bool indexed, bool masked, int64_t missing) {
  const int64_t D = t.inputs, H = t.hidden, O = t.outputs, M = t.members, used =
      (t.front ? D * D + D : 0) + D * H + H + H * O + O;
  t.columns = rounded_up(used, 32);
  t.height = indexed ? t.rows + 3 : t.rows;
  const auto params = numbers<T>(M * t.columns), x = numbers<T>(M * t.height * D - missing);
  const auto y = numbers<T>(M * t.height), slope = numbers<T>(M * t.rows * O);
  const auto masks = numbers<T>(masked ? M * t.rows * H : 0);
  std::vector<T> weights(M * t.height, T(1));
  std::vector<int64_t> index(indexed ? M * t.rows : 0);
  for (size_t i = 0; i < index.size(); ++i) index[i] = int64_t(i * 7) % t.height;
  t.params = params.data(), t.x = x.data();
  t.index = indexed ? index.data() : nullptr;
  t.masks = masked ? masks.data() : nullptr;

  std::vector<T> z(M * t.rows * O), grad(M * t.columns), loss(M);
  pi3nn_forward(&t, z.data());
  pi3nn_backward(&t, slope.data(), grad.data());
  if (O == 1)
    for (double floor : {-1.0, 0.0, 0.5})
      pi3nn_mean_square(&t, y.data(), weights.data(), floor, loss.data(), grad.data());

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
  for (int64_t adam : {0, 1}) {
    rule.adam = adam;
    pi3nn_optimise(&rule, loss.data());
  }
}

}  // namespace

int main(int count, char**) {
  int cases = 0;
  for (int64_t inputs : {1, 4, 13})
    for (int64_t hidden : {1, 7, 16, 33, 50, 75})
      for (int64_t outputs : {1, 3})
        for (int64_t rows : {1, 8, 37})
          for (int64_t flags = 0; flags < 16; ++flags) {
            Task t = {};
            t.members = 2, t.inputs = inputs, t.hidden = hidden, t.outputs = outputs, t.rows = rows;
            t.front = flags & 1, t.tanh = flags >> 1 & 1;
            run(t, flags & 4, flags & 8, count > 1);
            ++cases;
          }
  std::printf("%d cases\n", cases);
}
