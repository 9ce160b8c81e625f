// The losses of the methods, for one member: its loss, and the gradient of its outputs.
//
// A loss sees its rows a vector at a time, `see(rows)`, and says its `value()` at the end. If it is
// `whole`, gradients are known only after all rows have been seen, and come from `settle(rows)`; else
// `see` fills them in. The formulas are those of the PyTorch losses, in pi3nn/engine/losses.py and
// pi3nn/methods/, which the tests hold against these. A row of weight 0 adds exact zeros.

#pragma once

#include "vectors.h"

// What a loss is about. Mirrored field by field in structs.py.
struct Loss {
  int64_t kind;
  const void *y, *weights;   // (M, N)
  int64_t y_stride;          // from member to member; 0 where all members share their targets
  const void* uniform;       // (M, B) or null
  int64_t uniform_stride;    // from member to member
  double constants[16];
  const void* state[4];      // (M,) each
  void* next;                // (M,), out: what state[0] is at the next step
  void* loss;                // (M,), out
};

namespace {

// One vector of rows: targets, weights, quantiles; outputs and their gradients, (outputs, pitch).
template <class T> struct Lanes {
  const T *y, *w, *tau, *z;
  T* g;
  int64_t pitch, tau_pitch;
  int first;  // the number of the first row in its group: a constant, where this is inlined

  Vec<T> target() const { return load<T>(y); }
  Vec<T> weight() const { return load<T>(w); }
  Vec<T> quantile(int64_t o) const { return load<T>(tau + o * tau_pitch); }
  // Rows of weight 0 may not have been computed.
  Vec<T> output(int64_t o) const { return weight() != 0 ? load<T>(z + o * pitch) : Vec<T>{}; }
  void slope(int64_t o, Vec<T> v) const { store<T>(g + o * pitch, v); }
  Vec<T> slope(int64_t o) const { return load<T>(g + o * pitch); }
};

// What a member's loss may need: its place, its rows of weight other than 0, the sum of its weights.
template <class T> struct About {
  const Loss& loss;
  int64_t member, outputs;
  T count, weight;
  T constant(int i) const { return T(loss.constants[i]); }
  T state(int i) const { return static_cast<const T*>(loss.state[i])[member]; }
};

// Mean of (v - y)^2 by weight, v being sqrt(z^2 + floor) of the output z if floor > 0; |z| if it is 0;
// softplus(z) if it is -2; else z itself.
template <class T> struct MeanSquare {
  static constexpr bool whole = false;
  const T floor, total, scale;
  Wide<T> squares;

  explicit MeanSquare(const About<T>& a)
      : floor(a.constant(0)), total(a.weight), scale(2 / a.weight) {}
  INLINE void see(const Lanes<T>& rows) {
    const Vec<T> z = rows.output(0), one = Vec<T>{} + T(1), w = rows.weight();
    Vec<T> v = z, slope = one;
    if (floor > 0) {
      v = root<T>(z * z + floor);
      slope = z / v;
    } else if (floor == 0) {
      v = magnitude<T>(z);
      slope = z > 0 ? one : z < 0 ? -one : Vec<T>{};
    } else if (floor == -2) {
      const Softplus<T> plus(z);
      v = plus.value;
      slope = plus.slope;
    }
    const Vec<T> error = v - rows.target();
    rows.slope(0, scale * w * error * slope);
    squares.at(rows.first) += w * (error * error);
  }
  void settle(const Lanes<T>&) {}
  T value() const { return squares.sum() / total; }
};

// Pinball losses of every output: the mean of the sum of (1[q >= y] - tau) (q - y).
template <class T> struct Pinball {
  static constexpr bool whole = false;
  const int64_t outputs;
  const T count, scale;
  Wide<T> losses;

  explicit Pinball(const About<T>& a) : outputs(a.outputs), count(a.count), scale(1 / a.count) {}
  INLINE void see(const Lanes<T>& rows) {
    const Vec<T> w = rows.weight(), y = rows.target(), one = Vec<T>{} + T(1);
    for (int64_t o = 0; o < outputs; ++o) {
      const Vec<T> q = rows.output(o);
      const Vec<T> side = w * ((q >= y ? one : Vec<T>{}) - rows.quantile(o));
      rows.slope(o, scale * side);
      losses.at(rows.first) += side * (q - y);
    }
  }
  void settle(const Lanes<T>&) {}
  T value() const { return losses.sum() / count; }
};

// QD: the mean width of captured rows, and the soft share of captured rows that is missing. With
// POINT it is PIVEN: the square error of the point that output 2 places between the bounds joins.
template <class T, bool POINT> struct QualityDriven {
  static constexpr bool whole = true;
  const T count, gamma, size, lambda, soften;
  Wide<T> captured, width, soft, squares;
  bool settled = false;
  T narrow = 0, cover = 0;  // factors of the gradients of widths and of the soft count

  explicit QualityDriven(const About<T>& a)
      : count(a.count), gamma(a.constant(0)),
        size(a.constant(1) != 0 ? std::sqrt(a.count) : a.count / (gamma * (1 - gamma))),
        lambda(a.state(0)), soften(a.state(1)) {}

  static Vec<T> inside(const Lanes<T>& rows, Vec<T> upper, Vec<T> lower) {
    const Vec<T> y = rows.target();
    return (lower < y) & (y < upper) ? rows.weight() : Vec<T>{};
  }
  T missing() const {
    const T short_of = gamma - soft.sum() / count;
    return short_of < 0 ? T(0) : short_of;  // NaN stays NaN
  }
  INLINE void see(const Lanes<T>& rows) {
    const Vec<T> upper = rows.output(0), lower = rows.output(1);
    const Vec<T> y = rows.target(), w = rows.weight(), in = inside(rows, upper, lower);
    captured.at(rows.first) += in;
    width.at(rows.first) += magnitude<T>(upper - lower) * in;
    const Sigmoid<T> below(soften * (upper - y)), above(soften * (y - lower));
    soft.at(rows.first) += w * (below.value * above.value);
    rows.slope(0, w * (below.slope * above.value));
    rows.slope(1, -w * (below.value * above.slope));
    if (POINT) {
      const Sigmoid<T> v(rows.output(2));
      const Vec<T> error = v.value * upper + (T(1) - v.value) * lower - y;
      squares.at(rows.first) += w * (error * error);
    }
  }
  INLINE void settle(const Lanes<T>& rows) {
    if (!settled) {
      narrow = 1 / (captured.sum() + T(0.001));
      cover = -2 * lambda * size * missing() / count * soften;
      settled = true;
    }
    const Vec<T> upper = rows.output(0), lower = rows.output(1);
    const Vec<T> in = inside(rows, upper, lower), push = Vec<T>{} + narrow;
    Vec<T> up = fused(push, in, cover * rows.slope(0)), down = fused(-push, in, cover * rows.slope(1));
    if (POINT) {
      const Sigmoid<T> v(rows.output(2));
      const Vec<T> rest = T(1) - v.value, error = v.value * upper + rest * lower - rows.target();
      const Vec<T> slope = (2 / count) * rows.weight() * error;
      up += slope * v.value, down += slope * rest;
      rows.slope(2, slope * (upper - lower) * v.slope);
    }
    rows.slope(0, up);
    rows.slope(1, down);
  }
  T value() const {
    const T short_of = missing();
    return width.sum() / (captured.sum() + T(0.001)) + lambda * size * (short_of * short_of) +
           squares.sum() / count;
  }
};

// Laplace: the mean of s + |y| exp(-s) by weight, s being the output.
template <class T> struct Laplace {
  static constexpr bool whole = false;
  const T total, scale;
  Wide<T> losses;

  explicit Laplace(const About<T>& a) : total(a.weight), scale(1 / a.weight) {}
  INLINE void see(const Lanes<T>& rows) {
    const Vec<T> s = rows.output(0), w = rows.weight(), one = Vec<T>{} + T(1);
    const Vec<T> size = magnitude<T>(rows.target()), e = fading<T>(s);
    const Vec<T> inverse = s < 0 ? one / e : e;
    losses.at(rows.first) += w * fused(size, inverse, s);
    rows.slope(0, scale * w * fused(-size, inverse, one));
  }
  void settle(const Lanes<T>&) {}
  T value() const { return losses.sum() / total; }
};

// Pinball losses of quantiles that cannot cross, by weight: the middle output is the middle one, the
// others lie beyond the one before them by the softplus of their output. Constants are their levels.
template <class T> struct Quantiles {
  static constexpr bool whole = false;
  const About<T>& about;
  const T scale;
  Wide<T> losses;

  explicit Quantiles(const About<T>& a) : about(a), scale(1 / a.weight) {}
  INLINE void see(const Lanes<T>& rows) {
    const int64_t middle = about.outputs / 2;
    const Vec<T> w = rows.weight(), y = rows.target(), median = rows.output(middle);
    Vec<T> sum = {};  // of the losses
    const auto side = [&](int64_t o, Vec<T> q) INLINE_LAMBDA {
      const Vec<T> over = (q >= y ? Vec<T>{} + T(1) : Vec<T>{}) - about.constant(o);
      sum += over * (q - y);
      return over;
    };
    Vec<T> all = side(middle, median);  // the gradient of the middle one: all move with it
    Vec<T> rise[16];
    for (int64_t way = 1; way >= -1; way -= 2) {
      Vec<T> q = median, beyond = {};
      for (int64_t o = middle + way, left = middle; left > 0; o += way, --left) {
        const Softplus<T> plus(rows.output(o));
        q = way > 0 ? q + plus.value : q - plus.value;
        rise[o] = way > 0 ? plus.slope : -plus.slope;
        rows.slope(o, side(o, q));
      }
      for (int64_t o = middle + way * middle; o != middle; o -= way) {
        beyond += rows.slope(o);
        rows.slope(o, scale * w * beyond * rise[o]);
      }
      all += beyond;
    }
    rows.slope(middle, scale * w * all);
    losses.at(rows.first) += w * sum;
  }
  void settle(const Lanes<T>&) {}
  T value() const { return losses.sum() / about.weight; }
};

// log(softplus(z)), which is z where exp(z) is small, and its derivative.
template <class T> struct LogSoftplus {
  Vec<T> value, slope;
  LogSoftplus(Vec<T> z, const Softplus<T>& plus) {
    const auto small = z < T(-15);
    const Vec<T> one = Vec<T>{} + T(1), safe = small ? one : plus.value;
    value = small ? z : logarithm<T>(safe);
    slope = small ? one : plus.slope / safe;
  }
};

// DER: the evidential loss, and its coefficient moved on.
template <class T> struct Evidential {
  static constexpr bool whole = false;
  const About<T>& about;
  const T scale, coefficient, smallest;  // a smaller nu makes the loss infinite
  Wide<T> nll, evidence;
  Vec<T> overflows = {};

  explicit Evidential(const About<T>& a)
      : about(a), scale(1 / a.count), coefficient(a.state(0)), smallest(a.state(3)) {}

  INLINE void see(const Lanes<T>& rows) {
    const Vec<T> y = rows.target(), w = rows.weight(), m = rows.output(0), one = Vec<T>{} + T(1);
    const Vec<T> error = magnitude<T>(y - m), floor = Vec<T>{} + T(1e-18);
    const Softplus<T> nu(rows.output(1)), excess(rows.output(2)), b(rows.output(3));
    const LogSoftplus<T> log_nu(rows.output(1), nu), log_b(rows.output(3), b);
    const Vec<T> a = excess.value + T(1);
    const Vec<T> log_w = T(0.69314718055994530942) + log_b.value + logarithm<T>(T(1) + nu.value);
    overflows = nu.value < smallest ? one : overflows;
    const auto tiny = error < floor;
    const Vec<T> log_error = logarithm<T>(tiny ? floor : error);
    const Softplus<T> ratio(log_error + log_error + log_nu.value - log_w);
    const GammaRatio<T> gammas(a);

    nll.at(rows.first) += w * ((T(1.14472988584940017414) - log_nu.value + log_w) * T(0.5) +
                (a + T(0.5)) * ratio.value + gammas.value);
    const Vec<T> sure = nu.value + nu.value + a;
    evidence.at(rows.first) += w * error * sure;

    const Vec<T> part = scale * w, weight = Vec<T>{} + coefficient;
    const Vec<T> pull = (a + T(0.5)) * ratio.slope;
    const Vec<T> by_error = (tiny ? Vec<T>{} : (pull + pull) / error) + coefficient * sure;
    rows.slope(0, part * (m > y ? by_error : m < y ? -by_error : Vec<T>{}));
    const Vec<T> rest = fused(weight, error, fused(weight, error, (T(0.5) - pull) / (one + nu.value)));
    rows.slope(1, part * fused(pull - T(0.5), log_nu.slope, rest * nu.slope));
    rows.slope(2, part * excess.slope * (fused(weight, error, ratio.value + gammas.slope)));
    rows.slope(3, part * (T(0.5) - pull) * log_b.slope);
  }
  void settle(const Lanes<T>&) {}
  T value() const {
    const T bracket = evidence.sum() / about.count - about.state(2);
    static_cast<T*>(about.loss.next)[about.member] = coefficient + about.state(1) * bracket;
    if (sum<T>(overflows) > 0) return std::numeric_limits<T>::infinity();
    return nll.sum() / about.count + coefficient * bracket;
  }
};

}  // namespace
