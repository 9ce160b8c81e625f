// Vectors of the machine's own width, and the functions that PyTorch would be asked for elsewhere:
// each good to a few units in the last place, each lane on its own.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#if defined(__FMA__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define REGISTER_ROWS 8
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define REGISTER_ROWS 4
#else
#define VECTOR_BYTES 16
#define REGISTER_ROWS 2
#endif

// What must be part of its caller, for its arrays to be registers.
#define INLINE __attribute__((always_inline)) inline
#define INLINE_LAMBDA __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

namespace {

constexpr int TILE = 8;              // rows that are taken at a time
constexpr int ROWS = REGISTER_ROWS;  // rows whose hidden units are in registers together

template <class T> struct Types;
template <> struct Types<float> {
  typedef float V __attribute__((vector_size(VECTOR_BYTES)));
  typedef uint32_t U __attribute__((vector_size(VECTOR_BYTES)));
  typedef int32_t S __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr int mantissa = 23;
  static constexpr uint32_t one = 0x3f800000u, root_half = 0x3f3504f3u;
  static constexpr float largest = 87;  // whose exponential is taken
  static constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
};
template <> struct Types<double> {
  typedef double V __attribute__((vector_size(VECTOR_BYTES)));
  typedef uint64_t U __attribute__((vector_size(VECTOR_BYTES)));
  typedef int64_t S __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr int mantissa = 52;
  static constexpr uint64_t one = 0x3ff0000000000000ull, root_half = 0x3fe6a09e667f3bcdull;
  static constexpr double largest = 700;
  static constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
};

template <class T> using Vec = typename Types<T>::V;
template <class T> constexpr int LANES = VECTOR_BYTES / sizeof(T);

template <class T> inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T> inline void store(T* p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }
template <class T> inline Vec<T> load_part(const T* p, int64_t count) {
  if (count >= LANES<T>) return load(p);
  Vec<T> v = {};
  if (count > 0) std::memcpy(&v, p, count * sizeof(T));
  return v;
}
// The sum of v over its lanes: its halves are added until one number is left.
template <class T, int COUNT> struct Halves {
  typedef T V __attribute__((vector_size(COUNT * sizeof(T))));
  static T sum(V v) {
    typename Halves<T, COUNT / 2>::V low, high;
    std::memcpy(&low, &v, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
    return Halves<T, COUNT / 2>::sum(low + high);
  }
};
template <class T> struct Halves<T, 1> {
  typedef T V;
  static T sum(V v) { return v; }
};
template <class T> inline T sum(Vec<T> v) { return Halves<T, LANES<T>>::sum(v); }

// Sums over lanes have the same order on every processor, that of vectors of 64 bytes, so that numbers
// do not depend on the width of its own: number i of a sum is added to lane i % GROUP.
template <class T> constexpr int GROUP = 64 / sizeof(T);
template <class T> constexpr int PARTS = GROUP<T> / LANES<T>;
template <class T> struct Wide {
  Vec<T> part[PARTS<T>] = {};

  // The part for the vector that begins with number i.
  INLINE Vec<T>& at(int64_t i) { return part[PARTS<T> == 1 ? 0 : i / LANES<T> % PARTS<T>]; }
  T sum() const {
    Wide<T> w = *this;
    for (int half = PARTS<T> / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) w.part[i] += w.part[i + half];
    return ::sum<T>(w.part[0]);
  }
};

inline int64_t rounded_up(int64_t n, int64_t block) { return (n + block - 1) / block * block; }

// Zeroed memory, aligned for vectors.
template <class T> class Buffer {
 public:
  explicit Buffer(int64_t count) : bytes_(rounded_up(count * sizeof(T) + 1, 64)) {
    data_ = static_cast<T*>(::operator new(bytes_, std::align_val_t(64)));
    clear();
  }
  ~Buffer() { ::operator delete(data_, std::align_val_t(64)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void clear() { std::memset(static_cast<void*>(data_), 0, bytes_); }
  operator T*() { return data_; }
  operator const T*() const { return data_; }

 private:
  int64_t bytes_;
  T* data_;
};

// While one of these is alive, numbers too small to be normal count as zero: the moments of units
// that get no gradient would otherwise decay into a range that is a hundred times slower.
class FlushDenormals {
#if defined(__SSE__)
 public:
  FlushDenormals() : saved_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(saved_ | 0x8040); }
  ~FlushDenormals() { __builtin_ia32_ldmxcsr(saved_); }

 private:
  unsigned saved_;
#else
 public:
  FlushDenormals() {}
#endif
};

// Functions --------------------------------------------------------------------------------------

// a b + c, rounded once. Compilers may fuse either product of a sum of two: where there are two, this
// says which, so that all builds do the same.
#if defined(__AVX512F__)
inline Vec<float> fused(Vec<float> a, Vec<float> b, Vec<float> c) { return _mm512_fmadd_ps(a, b, c); }
inline Vec<double> fused(Vec<double> a, Vec<double> b, Vec<double> c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(__FMA__)
inline Vec<float> fused(Vec<float> a, Vec<float> b, Vec<float> c) { return _mm256_fmadd_ps(a, b, c); }
inline Vec<double> fused(Vec<double> a, Vec<double> b, Vec<double> c) { return _mm256_fmadd_pd(a, b, c); }
#else
template <class V> inline V fused(V a, V b, V c) { return a * b + c; }
#endif

template <class T> inline Vec<T> magnitude(Vec<T> v) { return v < 0 ? -v : v; }

template <class T> inline Vec<T> root(Vec<T> v) {
  for (int i = 0; i < LANES<T>; ++i) v[i] = std::sqrt(v[i]);
  return v;
}

// exp(y) for |y| <= 87, or 700 in double.
template <class T> inline Vec<T> exponential(Vec<T> y) {
  using K = Types<T>;
  typedef typename K::U U;
  const Vec<T> shifted = y * T(1.44269504088896340736) + K::magic;
  const Vec<T> n = shifted - K::magic;
  const Vec<T> r = (y - n * K::ln2_high) - n * K::ln2_low;
  Vec<T> p = {};
  if (sizeof(T) == 8) {
    p = p + T(1.0 / 6227020800.0);
    p = p * r + T(1.0 / 479001600.0);
    p = p * r + T(1.0 / 39916800.0);
    p = p * r + T(1.0 / 3628800.0);
    p = p * r + T(1.0 / 362880.0);
    p = p * r + T(1.0 / 40320.0);
  }
  p = p * r + T(1.0 / 5040.0);
  p = p * r + T(1.0 / 720.0);
  p = p * r + T(1.0 / 120.0);
  p = p * r + T(1.0 / 24.0);
  p = p * r + T(1.0 / 6.0);
  p = p * r + T(0.5);
  p = p * r + T(1);
  p = p * r + T(1);
  U bits, scale_bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  scale_bits = (bits << K::mantissa) + K::one;
  Vec<T> scale;
  std::memcpy(&scale, &scale_bits, sizeof scale);
  return p * scale;
}

// tanh to a few units in the last place: x + x^3 P/Q near zero, 1 - 2 / (exp(2|x|) + 1) elsewhere.
// P/Q is the (7, 6) convergent of the continued fraction of tanh, less x: exact to 1e-16 relative
// where it is used.
template <class T> inline Vec<T> tangent(Vec<T> x) {
  const Vec<T> size = magnitude<T>(x);
  const Vec<T> clipped = size > T(20) ? Vec<T>{} + T(20) : size;  // NaN stays NaN
  const Vec<T> e = exponential<T>(clipped + clipped);
  const Vec<T> z = x * x;
  // tanh x = x (135135 + 17325 z + 378 z^2 + z^3) / (135135 + 62370 z + 3150 z^2 + 28 z^3)
  const Vec<T> p = -(z * (T(45045) + z * (T(2772) + z * T(27))));
  const Vec<T> q = T(135135) + z * (T(62370) + z * (T(3150) + z * T(28)));
  const auto near = size < T(0.3);
  const Vec<T> ratio = (near ? p : Vec<T>{} - T(2)) / (near ? q : e + T(1));
  const Vec<T> far = T(1) + ratio;
  return near ? x + x * ratio : (x < 0 ? -far : far);
}

// exp(-|x|)
template <class T> inline Vec<T> fading(Vec<T> x) {
  const T largest = Types<T>::largest;
  const Vec<T> size = magnitude<T>(x);
  const auto beyond = size > largest;  // false for NaN, which stays
  return beyond ? Vec<T>{} : exponential<T>(-(beyond ? Vec<T>{} : size));
}

// 1 / (1 + exp(-x)) and its derivative.
template <class T> struct Sigmoid {
  Vec<T> value, slope;
  explicit Sigmoid(Vec<T> x) {
    const Vec<T> e = fading<T>(x), upper = T(1) / (T(1) + e), lower = e * upper;
    value = x < 0 ? lower : upper;
    slope = lower * upper;
  }
};

// The logarithm of normal x > 0; NaN for NaN and infinity. x = 2^n m with m in [sqrt(1/2), sqrt(2)),
// log m = 2 artanh(s) with s = (m - 1) / (m + 1).
template <class T> inline Vec<T> logarithm(Vec<T> x) {
  using K = Types<T>;
  typename K::U bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits -= K::root_half;
  typename K::S power;
  std::memcpy(&power, &bits, sizeof power);
  const Vec<T> n = __builtin_convertvector(power >> K::mantissa, Vec<T>);
  const typename K::U fraction = ((typename K::U{} + 1) << K::mantissa) - 1;
  bits = (bits & fraction) + K::root_half;
  Vec<T> m;
  std::memcpy(&m, &bits, sizeof m);
  const Vec<T> s = (m - T(1)) / (m + T(1)), z = s * s;
  Vec<T> p = {};
  if (sizeof(T) == 8) {
    p = p + T(1.0 / 21);
    p = p * z + T(1.0 / 19);
    p = p * z + T(1.0 / 17);
    p = p * z + T(1.0 / 15);
    p = p * z + T(1.0 / 13);
    p = p * z + T(1.0 / 11);
  }
  p = p * z + T(1.0 / 9);
  p = p * z + T(1.0 / 7);
  p = p * z + T(1.0 / 5);
  p = p * z + T(1.0 / 3);
  const Vec<T> twice = s + s, low = fused(twice * z, p, n * K::ln2_low);
  return n * K::ln2_high + (twice + low) + (x - x);
}

// log(1 + exp(x)) and its derivative; as in PyTorch, x itself beyond 20.
template <class T> struct Softplus {
  Vec<T> value, slope;
  explicit Softplus(Vec<T> x) {
    const Vec<T> e = fading<T>(x), u = T(1) + e;
    const Vec<T> log1p = logarithm<T>(u) + (e - (u - T(1))) / u;
    const auto far = x > T(20);
    value = far ? x : (x < 0 ? log1p : x + log1p);
    slope = far ? Vec<T>{} + T(1) : (x < 0 ? e : Vec<T>{} + T(1)) / u;
  }
};

// lnG(a) - lnG(a + 1/2) for a >= 1, and its derivative: an asymptotic series, from a + STEPS where a
// is small, with G(a) = G(a + 1) / a to get there.
template <class T> struct GammaRatio {
  static constexpr int STEPS = sizeof(T) == 8 ? 8 : 4;
  Vec<T> value, slope;
  explicit GammaRatio(Vec<T> a) {
    const auto small = a < T(30);
    const Vec<T> near = small ? a : Vec<T>{} + T(30), far = small ? a + T(STEPS) : a;
    const Vec<T> r = T(1) / far, z = r * r;
    const Vec<T> series =
        r * (T(1.0 / 8) + z * (T(-1.0 / 192) + z * (T(1.0 / 640) + z * (T(-17.0 / 14336) + z * T(31.0 / 18432)))));
    value = logarithm<T>(far) * T(-0.5) + series;
    slope = T(-0.5) * r -
        z * (T(1.0 / 8) + z * (T(-3.0 / 192) + z * (T(5.0 / 640) + z * (T(-119.0 / 14336) + z * T(279.0 / 18432)))));
    // The product of (near + k + 1/2) / (near + k), and the derivative of its logarithm.
    Vec<T> over = Vec<T>{} + T(1), under = over, steps = {};
    for (int k = 0; k < STEPS; ++k) {
      const Vec<T> low = near + T(k), high = low + T(0.5);
      over *= high, under *= low;
      steps -= T(0.5) / (low * high);
    }
    const Vec<T> log_steps = logarithm<T>(over / under);
    value += small ? log_steps : Vec<T>{};
    slope += small ? steps : Vec<T>{};
  }
};

}  // namespace
