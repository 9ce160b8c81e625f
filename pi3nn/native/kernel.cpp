// The fused operator: forward, backward and optimiser step of stacks of small networks.
//
// A network is inputs -> [front: linear, inputs wide] -> hidden units -> outputs; its parameters are
// one row of a buffer (members, columns), in the order front.weight (D, D), front.bias, hidden.weight
// (D, H), hidden.bias, out.weight (H, O), out.bias, padding. Eight rows of data are taken at a time;
// their hidden layer lives in registers and first-level cache and is never written to memory: where
// the backward pass comes later, it is computed again.
//
// Members are computed one after the other, each from its own numbers alone and in a fixed order, so
// that a result does not depend on the stack, to the last bit. Rows whose output gradient is zero add
// exact zeros. The flags of the build keep NaN and infinity, which training looks for.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define REGISTER_ROWS 8
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define REGISTER_ROWS 4
#else
#define VECTOR_BYTES 16
#define REGISTER_ROWS 4
#endif

// What must be part of its caller, for its arrays to be registers.
#define INLINE __attribute__((always_inline)) inline
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
  static constexpr int mantissa = 23;
  static constexpr uint32_t one = 0x3f800000u;
  static constexpr float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
};
template <> struct Types<double> {
  typedef double V __attribute__((vector_size(VECTOR_BYTES)));
  typedef uint64_t U __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr int mantissa = 52;
  static constexpr uint64_t one = 0x3ff0000000000000ull;
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

// Activations ------------------------------------------------------------------------------------

// exp(y) for y in [0, 40].
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
  const Vec<T> size = x < 0 ? -x : x;
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

struct Relu {
  template <class T> static Vec<T> value(Vec<T> v) { return v < 0 ? Vec<T>{} : v; }
  template <class T> static Vec<T> slope(Vec<T> h, Vec<T> g) { return h > 0 ? g : Vec<T>{}; }
};
struct Tanh {
  template <class T> static Vec<T> value(Vec<T> v) { return tangent<T>(v); }
  template <class T> static Vec<T> slope(Vec<T> h, Vec<T> g) { return g * (T(1) - h * h); }
};

}  // namespace

// What a call is about. Mirrored field by field in build.py.
struct Task {
  int64_t members, inputs, hidden, outputs, columns;
  int64_t front, tanh;
  int64_t rows;           // rows of a step, B
  int64_t height;         // rows of a member in x (and y, weights), N
  const void* params;     // (M, P)
  const void* x;          // (M, N, D)
  const int64_t* index;   // (M, B) into the N rows; null: the first B
  const void* masks;      // (M, B, H) or null
};

namespace {

// The parameters of one member, units padded to whole vectors, the front layer folded into the
// hidden one; and their gradients in the same layout.
template <class T> struct Packed {
  int64_t D, H, O, width;
  bool front;
  Buffer<T> w1, b1, w2, b2;

  explicit Packed(const Task& t)
      : D(t.inputs), H(t.hidden), O(t.outputs), width(rounded_up(t.hidden, LANES<T>)),
        front(t.front != 0), w1(D * width), b1(width), w2(O * width), b2(O) {}

  void clear() { w1.clear(), b1.clear(), w2.clear(), b2.clear(); }

  const T* hidden_weight(const T* p) const { return front ? p + D * D + D : p; }

  void read(const T* p) {
    const T *w = hidden_weight(p), *bias = w + D * H, *out = bias + H;
    if (front) {
      // (x A + a) W + b = x (A W) + (a W + b)
      for (int64_t i = 0; i <= D; ++i) {
        T* row = i < D ? w1 + i * width : static_cast<T*>(b1);
        for (int64_t h = 0; h < H; ++h) row[h] = i < D ? T(0) : bias[h];
        for (int64_t d = 0; d < D; ++d) {
          const T a = p[i * D + d];
          for (int64_t h = 0; h < H; ++h) row[h] += a * w[d * H + h];
        }
      }
    } else {
      for (int64_t d = 0; d < D; ++d) std::memcpy(w1 + d * width, w + d * H, H * sizeof(T));
      std::memcpy(b1, bias, H * sizeof(T));
    }
    for (int64_t o = 0; o < O; ++o) {
      for (int64_t h = 0; h < H; ++h) w2[o * width + h] = out[h * O + o];
      b2[o] = out[H * O + o];
    }
  }

  // As gradients of the parameters p, to the buffer's layout.
  void write_gradient(const T* p, T* g) const {
    const T* w = hidden_weight(p);
    T *gw = g + (w - p), *gbias = gw + D * H, *gout = gbias + H;
    if (front) {
      for (int64_t i = 0; i <= D; ++i) {
        const T* row = i < D ? w1 + i * width : static_cast<const T*>(b1);
        for (int64_t d = 0; d < D; ++d) {
          Vec<T> s = {};
          for (int64_t h = 0; h < H; h += LANES<T>)
            s += load<T>(row + h) * load_part<T>(w + d * H + h, H - h);
          g[i * D + d] = sum<T>(s);
        }
      }
      for (int64_t d = 0; d < D; ++d) {
        T* row = gw + d * H;
        for (int64_t h = 0; h < H; ++h) row[h] = p[D * D + d] * b1[h];
        for (int64_t i = 0; i < D; ++i) {
          const T a = p[i * D + d];
          for (int64_t h = 0; h < H; ++h) row[h] += a * w1[i * width + h];
        }
      }
    } else {
      for (int64_t d = 0; d < D; ++d) std::memcpy(gw + d * H, w1 + d * width, H * sizeof(T));
    }
    std::memcpy(gbias, b1, H * sizeof(T));
    for (int64_t o = 0; o < O; ++o) {
      for (int64_t h = 0; h < H; ++h) gout[h * O + o] = w2[o * width + h];
      gout[H * O + o] = b2[o];
    }
  }
};

// The rows of one tile: where they are, and their masks, padded to whole vectors.
template <class T> struct Tile {
  const T* rows[TILE];
  const T* masks;  // (TILE, width)
  int count;
};

// Whether all indices of a task are within its rows.
inline bool within(const Task& t) {
  if (t.index)
    for (int64_t i = 0; i < t.members * t.rows; ++i)
      if (t.index[i] < 0 || t.index[i] >= t.height) return false;
  return true;
}

// The rows that a task gathers, tile by tile.
template <class T> struct Source {
  const Task& t;
  int64_t width;
  Buffer<T> zeros;  // stands in for the rows of the last tile that do not exist
  Buffer<T> masks;

  explicit Source(const Task& task)
      : t(task), width(rounded_up(t.hidden, LANES<T>)), zeros(t.inputs),
        masks(t.masks ? TILE * width : 0) {}

  int64_t place(int64_t m, int64_t row) const {
    return m * t.height + (t.index ? t.index[m * t.rows + row] : row);
  }
  // The tile is good until the next one is asked for.
  Tile<T> tile(int64_t m, int64_t first) {
    Tile<T> tile;
    tile.count = t.rows - first < TILE ? t.rows - first : TILE;
    for (int r = 0; r < TILE; ++r)
      tile.rows[r] = r < tile.count ? static_cast<const T*>(t.x) + place(m, first + r) * t.inputs
                                    : static_cast<const T*>(zeros);
    if (t.masks) {
      if (tile.count < TILE) masks.clear();
      const T* from = static_cast<const T*>(t.masks) + (m * t.rows + first) * t.hidden;
      for (int r = 0; r < tile.count; ++r)
        std::memcpy(masks + r * width, from + r * t.hidden, t.hidden * sizeof(T));
    }
    tile.masks = masks;
    return tile;
  }
};

// Hidden units of ROWS rows and NV vectors of units, from `unit` on.
template <class T, class A, int NV>
INLINE void hidden_block(const Packed<T>& net, const T* const* rows, int64_t unit,
                         Vec<T> (&h)[ROWS][NV]) {
  const int64_t width = net.width;
  const T* w = net.w1 + unit;
  UNROLL
  for (int r = 0; r < ROWS; ++r)
    UNROLL
    for (int j = 0; j < NV; ++j) h[r][j] = load<T>(net.b1 + unit + j * LANES<T>);
  for (int64_t d = 0; d < net.D; ++d, w += width) {
    Vec<T> kernel[NV];
    UNROLL
    for (int j = 0; j < NV; ++j) kernel[j] = load<T>(w + j * LANES<T>);
    UNROLL
    for (int r = 0; r < ROWS; ++r)
      UNROLL
      for (int j = 0; j < NV; ++j) h[r][j] += rows[r][d] * kernel[j];
  }
  UNROLL
  for (int r = 0; r < ROWS; ++r)
    UNROLL
    for (int j = 0; j < NV; ++j) h[r][j] = A::template value<T>(h[r][j]);
}

// Add the block's part of the outputs to `out`, one vector per row and output. With `keep`, store
// the hidden units there, (TILE, width).
template <class T, class A, bool MASK, int NV>
INLINE void forward_block(const Packed<T>& net, const Tile<T>& tile, int64_t unit, Vec<T>* out,
                          T* keep) {
  UNROLL
  for (int first = 0; first < TILE; first += ROWS) {
    Vec<T> h[ROWS][NV];
    hidden_block<T, A, NV>(net, tile.rows + first, unit, h);
    UNROLL
    for (int r = 0; r < ROWS; ++r)
      UNROLL
      for (int j = 0; j < NV; ++j) {
        const int64_t at = unit + j * LANES<T>;
        if (keep) store<T>(keep + (first + r) * net.width + at, h[r][j]);
        if (MASK) h[r][j] *= load<T>(tile.masks + (first + r) * net.width + at);
      }
    for (int64_t o = 0; o < net.O; ++o) {
      Vec<T> kernel[NV];
      UNROLL
      for (int j = 0; j < NV; ++j) kernel[j] = load<T>(net.w2 + o * net.width + unit + j * LANES<T>);
      UNROLL
      for (int r = 0; r < ROWS; ++r) {
        Vec<T> s = out[o * TILE + first + r];
        UNROLL
        for (int j = 0; j < NV; ++j) s += h[r][j] * kernel[j];
        out[o * TILE + first + r] = s;
      }
    }
  }
}

// Outputs z (TILE, O) of a tile.
template <class T, class A, bool MASK>
INLINE void forward_tile(const Packed<T>& net, const Tile<T>& tile, Vec<T>* out, T* keep, T* z) {
  for (int64_t i = 0; i < net.O * TILE; ++i) out[i] = Vec<T>{};
  int64_t unit = 0;
  for (; unit + 2 * LANES<T> <= net.width; unit += 2 * LANES<T>)
    forward_block<T, A, MASK, 2>(net, tile, unit, out, keep);
  if (unit < net.width) forward_block<T, A, MASK, 1>(net, tile, unit, out, keep);
  for (int64_t o = 0; o < net.O; ++o)
    UNROLL
    for (int r = 0; r < TILE; ++r) z[r * net.O + o] = net.b2[o] + sum<T>(out[o * TILE + r]);
}

// Add the gradients of the block's parameters, given those of the outputs, g (TILE, O). The hidden
// units are read from `kept`, or computed again if it is null.
template <class T, class A, bool MASK, int NV>
INLINE void backward_block(const Packed<T>& net, const Tile<T>& tile, int64_t unit, const T* kept,
                           const T* g, Packed<T>& grad) {
  const int64_t width = net.width, O = net.O;
  UNROLL
  for (int first = 0; first < TILE; first += ROWS) {
    const T* const* rows = tile.rows + first;
    const T* gz = g + first * O;
    Vec<T> h[ROWS][NV];
    if (kept) {
      UNROLL
      for (int r = 0; r < ROWS; ++r)
        UNROLL
        for (int j = 0; j < NV; ++j) h[r][j] = load<T>(kept + (first + r) * width + unit + j * LANES<T>);
    } else {
      hidden_block<T, A, NV>(net, rows, unit, h);
    }
    UNROLL
    for (int j = 0; j < NV; ++j) {
      const int64_t at = unit + j * LANES<T>;
      Vec<T> mask[ROWS];
      if (MASK)
        UNROLL
        for (int r = 0; r < ROWS; ++r) mask[r] = load<T>(tile.masks + (first + r) * width + at);
      for (int64_t o = 0; o < O; ++o) {
        Vec<T> s = load<T>(grad.w2 + o * width + at);
        UNROLL
        for (int r = 0; r < ROWS; ++r) s += gz[r * O + o] * (MASK ? h[r][j] * mask[r] : h[r][j]);
        store<T>(grad.w2 + o * width + at, s);
      }
      Vec<T> bias = load<T>(grad.b1 + at);
      UNROLL
      for (int r = 0; r < ROWS; ++r) {
        Vec<T> s = gz[r * O] * load<T>(net.w2 + at);
        for (int64_t o = 1; o < O; ++o) s += gz[r * O + o] * load<T>(net.w2 + o * width + at);
        if (MASK) s *= mask[r];
        h[r][j] = A::template slope<T>(h[r][j], s);
        bias += h[r][j];
      }
      store<T>(grad.b1 + at, bias);
    }
    T* w = grad.w1 + unit;
    for (int64_t d = 0; d < net.D; ++d, w += width) {
      Vec<T> s[NV];
      UNROLL
      for (int j = 0; j < NV; ++j) s[j] = load<T>(w + j * LANES<T>);
      UNROLL
      for (int r = 0; r < ROWS; ++r)
        UNROLL
        for (int j = 0; j < NV; ++j) s[j] += rows[r][d] * h[r][j];
      UNROLL
      for (int j = 0; j < NV; ++j) store<T>(w + j * LANES<T>, s[j]);
    }
  }
}

template <class T, class A, bool MASK>
INLINE void backward_tile(const Packed<T>& net, const Tile<T>& tile, const T* kept, const T* g,
                          Packed<T>& grad) {
  UNROLL
  for (int r = 0; r < TILE; ++r)
    for (int64_t o = 0; o < net.O; ++o) grad.b2[o] += g[r * net.O + o];
  int64_t unit = 0;
  for (; unit + 2 * LANES<T> <= net.width; unit += 2 * LANES<T>)
    backward_block<T, A, MASK, 2>(net, tile, unit, kept, g, grad);
  if (unit < net.width) backward_block<T, A, MASK, 1>(net, tile, unit, kept, g, grad);
}

template <class T> inline bool any(const T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (values[i] != 0) return true;
  return false;
}

// Operators --------------------------------------------------------------------------------------

template <class T, class A, bool MASK> void forward(const Task& t, T* z) {
  Packed<T> net(t);
  Source<T> source(t);
  Buffer<Vec<T>> out(t.outputs * TILE);
  Buffer<T> outputs(t.outputs * TILE);
  for (int64_t m = 0; m < t.members; ++m) {
    net.read(static_cast<const T*>(t.params) + m * t.columns);
    for (int64_t first = 0; first < t.rows; first += TILE) {
      const Tile<T> tile = source.tile(m, first);
      forward_tile<T, A, MASK>(net, tile, out, nullptr, outputs);
      std::memcpy(z + (m * t.rows + first) * t.outputs, outputs,
                  tile.count * t.outputs * sizeof(T));
    }
  }
}

template <class T, class A, bool MASK> void backward(const Task& t, const T* gz, T* gparams) {
  Packed<T> net(t), grad(t);
  Source<T> source(t);
  Buffer<T> g(t.outputs * TILE);
  for (int64_t m = 0; m < t.members; ++m) {
    const T* p = static_cast<const T*>(t.params) + m * t.columns;
    net.read(p);
    grad.clear();
    for (int64_t first = 0; first < t.rows; first += TILE) {
      const Tile<T> tile = source.tile(m, first);
      g.clear();
      std::memcpy(g, gz + (m * t.rows + first) * t.outputs, tile.count * t.outputs * sizeof(T));
      if (any<T>(g, tile.count * t.outputs)) backward_tile<T, A, MASK>(net, tile, nullptr, g, grad);
    }
    grad.write_gradient(p, gparams + m * t.columns);
  }
}

// Turn outputs z (TILE) into what they stand for; `slope` is the derivative.
template <class T> inline void head(T floor, T* z, T* slope) {
  for (int r = 0; r < TILE; ++r) slope[r] = 1;
  if (floor > 0) {
    for (int r = 0; r < TILE; ++r) {
      const T value = std::sqrt(z[r] * z[r] + floor);
      slope[r] = z[r] / value;
      z[r] = value;
    }
  } else if (floor == 0) {
    for (int r = 0; r < TILE; ++r) {
      slope[r] = T((z[r] > 0) - (z[r] < 0));
      z[r] = std::fabs(z[r]);
    }
  }
}

// The weighted mean square of z - y and its gradient, in one pass. If `floor` is not negative, z
// stands for sqrt(z^2 + floor), or |z|.
template <class T, class A, bool MASK>
void mean_square(const Task& t, const T* y, const T* weights, T floor, T* loss, T* gparams) {
  Packed<T> net(t), grad(t);
  Source<T> source(t);
  Buffer<T> kept(TILE * net.width);
  Buffer<Vec<T>> out(TILE);
  for (int64_t m = 0; m < t.members; ++m) {
    const T* p = static_cast<const T*>(t.params) + m * t.columns;
    net.read(p);
    grad.clear();
    T total = 0, squares = 0;
    for (int64_t row = 0; row < t.rows; ++row) total += weights[source.place(m, row)];
    const T scale = 2 / total;
    for (int64_t first = 0; first < t.rows; first += TILE) {
      const Tile<T> tile = source.tile(m, first);
      T w[TILE] = {}, target[TILE] = {}, z[TILE], slope[TILE], error[TILE], g[TILE];
      for (int r = 0; r < tile.count; ++r) {
        const int64_t place = source.place(m, first + r);
        w[r] = weights[place], target[r] = y[place];
      }
      if (!any<T>(w, TILE)) continue;
      forward_tile<T, A, MASK>(net, tile, out, kept, z);
      head<T>(floor, z, slope);
      for (int r = 0; r < TILE; ++r) error[r] = z[r] - target[r];
      for (int r = 0; r < TILE; ++r) g[r] = scale * w[r] * error[r] * slope[r];
      for (int r = 0; r < TILE; ++r) squares += w[r] * (error[r] * error[r]);
      backward_tile<T, A, MASK>(net, tile, kept, g, grad);
    }
    loss[m] = squares / total;
    grad.write_gradient(p, gparams + m * t.columns);
  }
}

}  // namespace

// One step of an optimiser. Mirrored field by field in build.py.
struct Rule {
  int64_t members, columns;
  int64_t spans;            // kernels that are penalised: columns [2i], [2i + 1] of `span`
  const int64_t* span;
  int64_t adam;             // 0: plain gradient descent
  double beta1, beta2, eps; // eps times the root of the second bias correction
  double limit;             // updates must be smaller than this
  const void *params;       // (M, P)
  void *grad;               // (M, P), in and out: the penalties are added
  void *mean, *square;      // (M, P)
  void *update;             // (M, P), out
  const void *l1, *l2, *decay;  // (M,)
  const double* rate;       // (M,)
  int64_t rate_stride;
  double correction;        // factor of all rates
};

namespace {

// L1 and L2 of one kernel: its gradient is added to g, its value returned.
template <class T> T penalise(const T* w, T* g, int64_t count, T l1, T l2) {
  Vec<T> total = {};
  int64_t i = 0;
  for (; i + LANES<T> <= count; i += LANES<T>) {
    const Vec<T> v = load<T>(w + i), size = v < 0 ? -v : v;
    total += (size * l2 + l1) * size;
    const Vec<T> push = size * (2 * l2) + l1;
    store<T>(g + i, load<T>(g + i) + (v > 0 ? push : v < 0 ? -push : Vec<T>{}));
  }
  T rest = 0;
  for (; i < count; ++i) {
    const T size = std::fabs(w[i]), push = size * (2 * l2) + l1;
    rest += (size * l2 + l1) * size;
    g[i] += w[i] > 0 ? push : w[i] < 0 ? -push : T(0);
  }
  return sum<T>(total) + rest;
}

template <class T> inline Vec<T> root(Vec<T> v) {
  for (int i = 0; i < LANES<T>; ++i) v[i] = std::sqrt(v[i]);
  return v;
}

// Fill `update`, add the penalties to `loss`; the number of members whose loss or update is bad.
template <class T> int64_t optimise(const Rule& k, T* loss) {
  const auto column = [](const void* p, int64_t m) { return static_cast<const T*>(p)[m]; };
  int64_t bad = 0;
  for (int64_t m = 0; m < k.members; ++m) {
    const T* p = static_cast<const T*>(k.params) + m * k.columns;
    T* g = static_cast<T*>(k.grad) + m * k.columns;
    T* update = static_cast<T*>(k.update) + m * k.columns;
    for (int64_t s = 0; s < k.spans; ++s) {
      const int64_t start = k.span[2 * s], stop = k.span[2 * s + 1];
      loss[m] += penalise<T>(p + start, g + start, stop - start, column(k.l1, m), column(k.l2, m));
    }
    const T decay = column(k.decay, m), rate = T(k.rate[m * k.rate_stride] * k.correction);
    const T limit = T(k.limit);
    auto sound = Vec<T>{} == Vec<T>{};  // all true
    const auto finish = [&](int64_t i, Vec<T> u) {
      store<T>(update + i, u);
      sound &= (u < limit) & (u > -limit);  // false for NaN
    };
    if (decay != 0)
      for (int64_t i = 0; i < k.columns; i += LANES<T>)
        store<T>(g + i, load<T>(g + i) + decay * load<T>(p + i));
    if (k.adam) {
      T* mean = static_cast<T*>(k.mean) + m * k.columns;
      T* square = static_cast<T*>(k.square) + m * k.columns;
      const T lerp = T(1 - k.beta1), beta2 = T(k.beta2), rest2 = T(1 - k.beta2), eps = T(k.eps);
      for (int64_t i = 0; i < k.columns; i += LANES<T>) {
        const Vec<T> v = load<T>(g + i);
        Vec<T> a = load<T>(mean + i), b = load<T>(square + i);
        a += lerp * (v - a);
        b = b * beta2 + rest2 * v * v;
        store<T>(mean + i, a);
        store<T>(square + i, b);
        finish(i, a / (root<T>(b) + eps) * rate);
      }
    } else {
      for (int64_t i = 0; i < k.columns; i += LANES<T>) finish(i, load<T>(g + i) * rate);
    }
    bool good = std::isfinite(loss[m]);
    for (int i = 0; i < LANES<T>; ++i) good = good && sound[i];
    bad += !good;
  }
  return bad;
}

template <class T, class A> void forward(const Task& t, T* z) {
  t.masks ? forward<T, A, true>(t, z) : forward<T, A, false>(t, z);
}
template <class T, class A> void backward(const Task& t, const T* gz, T* g) {
  t.masks ? backward<T, A, true>(t, gz, g) : backward<T, A, false>(t, gz, g);
}
template <class T, class A>
void mean_square(const Task& t, const T* y, const T* w, T floor, T* loss, T* g) {
  t.masks ? mean_square<T, A, true>(t, y, w, floor, loss, g)
          : mean_square<T, A, false>(t, y, w, floor, loss, g);
}

}  // namespace

// The functions of the library, for the type that it is built for. All but the last return 0, or 1
// if an index is not that of a row.
extern "C" {
#define PUBLIC __attribute__((visibility("default")))

PUBLIC int64_t pi3nn_forward(const Task* t, REAL* z) {
  if (!within(*t)) return 1;
  FlushDenormals flush;
  t->tanh ? forward<REAL, Tanh>(*t, z) : forward<REAL, Relu>(*t, z);
  return 0;
}

PUBLIC int64_t pi3nn_backward(const Task* t, const REAL* gz, REAL* g) {
  if (!within(*t)) return 1;
  FlushDenormals flush;
  t->tanh ? backward<REAL, Tanh>(*t, gz, g) : backward<REAL, Relu>(*t, gz, g);
  return 0;
}

PUBLIC int64_t pi3nn_mean_square(const Task* t, const REAL* y, const REAL* w, double floor,
                                 REAL* loss, REAL* g) {
  if (!within(*t)) return 1;
  FlushDenormals flush;
  t->tanh ? mean_square<REAL, Tanh>(*t, y, w, REAL(floor), loss, g)
          : mean_square<REAL, Relu>(*t, y, w, REAL(floor), loss, g);
  return 0;
}

PUBLIC int64_t pi3nn_optimise(const Rule* k, REAL* loss) {
  FlushDenormals flush;
  return optimise<REAL>(*k, loss);
}
}
