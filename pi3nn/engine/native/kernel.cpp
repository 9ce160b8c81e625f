// The fused operator: forward, backward and optimiser step of stacks of small networks.
//
// A network is inputs -> [front: linear, inputs wide] -> hidden units -> outputs; its parameters are
// one row of a buffer (members, columns), in the order front.weight (D, D), front.bias, hidden.weight
// (D, H), hidden.bias, out.weight (H, O), out.bias, padding. Eight rows of data are taken at a time;
// their hidden layer lives in registers and cache and is never written to memory: where the backward
// pass comes much later, it is computed again.
//
// Members are computed one after the other, each from its own numbers alone and in a fixed order, so
// that a result does not depend on the stack, to the last bit. Rows whose output gradient is zero add
// exact zeros. The flags of the build keep NaN and infinity, which training looks for.

#include "losses.h"

namespace {

struct Relu {
  template <class T> static Vec<T> value(Vec<T> v) { return v < 0 ? Vec<T>{} : v; }
  template <class T> static Vec<T> slope(Vec<T> h, Vec<T> g) { return h > 0 ? g : Vec<T>{}; }
};
struct Tanh {
  template <class T> static Vec<T> value(Vec<T> v) { return tangent<T>(v); }
  template <class T> static Vec<T> slope(Vec<T> h, Vec<T> g) { return g * (T(1) - h * h); }
};

}  // namespace

// What a call is about. Mirrored field by field in structs.py.
struct Task {
  int64_t members, inputs, hidden, outputs, columns;
  int64_t front, tanh;
  int64_t rows;           // rows of a step, R: `batch` rows, as often as there are passes
  int64_t batch;          // B
  int64_t height;         // rows of a member in x (and y, weights), N; 0: all share the same, no index
  const void* params;     // (M, P)
  const void* x;          // (M, N, D), or (M, N, D - 1) and a column
  int64_t x_stride;       // from member to member; 0 where all members share their rows
  const int64_t* index;   // (M, B) into the N rows; null: the first B
  int64_t index_stride;   // from member to member
  const void* masks;      // (M, B, H) or null
  int64_t masks_stride;
  const void* column;     // (M, passes, B) or null: the last input
  int64_t column_stride[3];
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
          Wide<T> s;
          for (int64_t h = 0; h < H; h += LANES<T>)
            s.at(h) += load<T>(row + h) * load_part<T>(w + d * H + h, H - h);
          g[i * D + d] = s.sum();
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
  const T* last;   // (TILE), the last input where it is a column of its own, or null
  const T* masks;  // (TILE, width)
};

// Whether all indices of a task are within its rows.
inline bool within(const Task& t) {
  if (t.index)
    for (int64_t m = 0; m < t.members; ++m)
      for (int64_t i = 0; i < t.batch; ++i) {
        const int64_t place = t.index[m * t.index_stride + i];
        if (place < 0 || place >= t.height) return false;
      }
  return true;
}

// The rows that a task gathers, tile by tile.
template <class T> struct Source {
  const Task& t;
  int64_t width;
  const int64_t given;  // inputs that lie in x
  Buffer<T> zeros;      // stands in for the rows of the last tile that do not exist
  Buffer<T> masks;
  Buffer<T> last;       // the last input of a member's rows, where it is a column of its own

  explicit Source(const Task& task)
      : t(task), width(rounded_up(t.hidden, LANES<T>)), given(t.inputs - (t.column != nullptr)),
        zeros(t.inputs), masks(t.masks ? TILE * width : 0),
        last(t.column ? rounded_up(t.rows, TILE) : 0) {}

  // To be called once for every member, before its tiles are asked for.
  void read(int64_t m) {
    if (t.column)
      for (int64_t first = 0, pass = 0; first < t.rows; first += t.batch, ++pass)
        for (int64_t own = 0; own < t.batch; ++own) last[first + own] = column(m, pass, own);
  }
  // Which of its N rows a row of a member is.
  INLINE int64_t place(int64_t m, int64_t row) const {
    return t.index ? t.index[m * t.index_stride + row] : row;
  }
  // The tile is good until the next one is asked for.
  INLINE Tile<T> tile(int64_t m, int64_t first) {
    Tile<T> tile{{}, t.column ? last + first : nullptr, masks};
    const int count = t.rows - first < TILE ? t.rows - first : TILE;
    const T* const x = static_cast<const T*>(t.x) + m * t.x_stride;
    if (count < TILE) {
      masks.clear();
      for (int r = 0; r < TILE; ++r) tile.rows[r] = zeros;
    }
    int64_t own = t.rows == t.batch ? first : first % t.batch;
    for (int r = 0; r < count; ++r, ++own) {
      if (own == t.batch) own = 0;
      tile.rows[r] = x + place(m, own) * given;
      if (t.masks) std::memcpy(masks + r * width, mask(m, own), t.hidden * sizeof(T));
    }
    return tile;
  }
  T column(int64_t m, int64_t pass, int64_t own) const {
    const int64_t* stride = t.column_stride;
    return static_cast<const T*>(t.column)[m * stride[0] + pass * stride[1] + own * stride[2]];
  }
  const T* mask(int64_t m, int64_t own) const {
    return static_cast<const T*>(t.masks) + (m * t.masks_stride + own) * t.hidden;
  }
};

// Call `block(unit, vectors, part)` for blocks of up to three vectors of units; `part` is that of the
// first one in sums over lanes. Four that are left are two and two: a block of one would wait for its
// own sums.
template <class T, class Block> INLINE void in_blocks(int64_t width, const Block& block) {
  const auto call = [&](int64_t unit, auto vectors) INLINE_LAMBDA {
    switch (unit / LANES<T> % PARTS<T>) {
      case 0: block(unit, vectors, std::integral_constant<int, 0>()); break;
      case 1: block(unit, vectors, std::integral_constant<int, 1 % PARTS<T>>()); break;
      case 2: block(unit, vectors, std::integral_constant<int, 2 % PARTS<T>>()); break;
      default: block(unit, vectors, std::integral_constant<int, 3 % PARTS<T>>());
    }
  };
  int64_t unit = 0, left = width / LANES<T>;
  for (; left == 3 || left > 4; left -= 3, unit += 3 * LANES<T>)
    call(unit, std::integral_constant<int, 3>());
  for (; left >= 2; left -= 2, unit += 2 * LANES<T>) call(unit, std::integral_constant<int, 2>());
  if (left) call(unit, std::integral_constant<int, 1>());
}

// Hidden units of ROWS rows and NV vectors of units, from `unit` on.
template <class T, class A, int NV>
INLINE void hidden_block(const Packed<T>& net, const Tile<T>& tile, int first, int64_t unit,
                         Vec<T> (&h)[ROWS][NV]) {
  const T* const* rows = tile.rows + first;
  const int64_t width = net.width, given = net.D - (tile.last != nullptr);
  const T* w = net.w1 + unit;
  UNROLL
  for (int r = 0; r < ROWS; ++r)
    UNROLL
    for (int j = 0; j < NV; ++j) h[r][j] = load<T>(net.b1 + unit + j * LANES<T>);
  for (int64_t d = 0; d < given; ++d, w += width) {
    Vec<T> kernel[NV];
    UNROLL
    for (int j = 0; j < NV; ++j) kernel[j] = load<T>(w + j * LANES<T>);
    UNROLL
    for (int r = 0; r < ROWS; ++r)
      UNROLL
      for (int j = 0; j < NV; ++j) h[r][j] += rows[r][d] * kernel[j];
  }
  if (tile.last)
    UNROLL
    for (int j = 0; j < NV; ++j) {
      const Vec<T> kernel = load<T>(w + j * LANES<T>);
      UNROLL
      for (int r = 0; r < ROWS; ++r) h[r][j] += tile.last[first + r] * kernel;
    }
  UNROLL
  for (int r = 0; r < ROWS; ++r)
    UNROLL
    for (int j = 0; j < NV; ++j) h[r][j] = A::template value<T>(h[r][j]);
}

// Add the block's part of the outputs to `out`, one vector per row and output. With `keep`, store
// the hidden units there, (TILE, width).
template <class T, class A, bool MASK, int NV, int PART>
INLINE void forward_block(const Packed<T>& net, const Tile<T>& tile, int64_t unit, Wide<T>* out,
                          T* keep) {
  UNROLL
  for (int first = 0; first < TILE; first += ROWS) {
    Vec<T> h[ROWS][NV];
    hidden_block<T, A, NV>(net, tile, first, unit, h);
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
        Wide<T> s = out[o * TILE + first + r];
        UNROLL
        for (int j = 0; j < NV; ++j) s.part[(PART + j) % PARTS<T>] += h[r][j] * kernel[j];
        out[o * TILE + first + r] = s;
      }
    }
  }
}

// Outputs z (O, pitch) of a tile.
template <class T, class A, bool MASK>
INLINE void forward_tile(const Packed<T>& net, const Tile<T>& tile, Wide<T>* out, T* keep, T* z,
                         int64_t pitch) {
  for (int64_t i = 0; i < net.O * TILE; ++i) out[i] = Wide<T>{};
  in_blocks<T>(net.width, [&](int64_t unit, auto vectors, auto part) INLINE_LAMBDA {
    forward_block<T, A, MASK, vectors(), part()>(net, tile, unit, out, keep);
  });
  for (int64_t o = 0; o < net.O; ++o)
    UNROLL
    for (int r = 0; r < TILE; ++r) z[o * pitch + r] = net.b2[o] + out[o * TILE + r].sum();
}

// Add the gradients of the block's parameters, given those of the outputs, g (O, pitch). The hidden
// units are read from `kept`, or computed again if it is null.
template <class T, class A, bool MASK, int NV>
INLINE void backward_block(const Packed<T>& net, const Tile<T>& tile, int64_t unit, const T* kept,
                           const T* g, int64_t pitch, Packed<T>& grad) {
  const int64_t width = net.width, O = net.O;
  UNROLL
  for (int first = 0; first < TILE; first += ROWS) {
    const T* const* rows = tile.rows + first;
    const T* gz = g + first;
    Vec<T> h[ROWS][NV];
    if (kept) {
      UNROLL
      for (int r = 0; r < ROWS; ++r)
        UNROLL
        for (int j = 0; j < NV; ++j) h[r][j] = load<T>(kept + (first + r) * width + unit + j * LANES<T>);
    } else {
      hidden_block<T, A, NV>(net, tile, first, unit, h);
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
        for (int r = 0; r < ROWS; ++r) s += gz[o * pitch + r] * (MASK ? h[r][j] * mask[r] : h[r][j]);
        store<T>(grad.w2 + o * width + at, s);
      }
      Vec<T> bias = load<T>(grad.b1 + at);
      UNROLL
      for (int r = 0; r < ROWS; ++r) {
        Vec<T> s = gz[r] * load<T>(net.w2 + at);
        for (int64_t o = 1; o < O; ++o)
          s = fused(Vec<T>{} + gz[o * pitch + r], load<T>(net.w2 + o * width + at), s);
        if (MASK) s *= mask[r];
        h[r][j] = A::template slope<T>(h[r][j], s);
        bias += h[r][j];
      }
      store<T>(grad.b1 + at, bias);
    }
    T* w = grad.w1 + unit;
    const int64_t given = net.D - (tile.last != nullptr);
    for (int64_t d = 0; d < given; ++d, w += width) {
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
    if (tile.last)
      UNROLL
      for (int j = 0; j < NV; ++j) {
        Vec<T> s = load<T>(w + j * LANES<T>);
        UNROLL
        for (int r = 0; r < ROWS; ++r) s += tile.last[first + r] * h[r][j];
        store<T>(w + j * LANES<T>, s);
      }
  }
}

template <class T, class A, bool MASK>
INLINE void backward_tile(const Packed<T>& net, const Tile<T>& tile, const T* kept, const T* g,
                          int64_t pitch, Packed<T>& grad) {
  for (int64_t o = 0; o < net.O; ++o)
    UNROLL
    for (int r = 0; r < TILE; ++r) grad.b2[o] += g[o * pitch + r];
  in_blocks<T>(net.width, [&](int64_t unit, auto vectors, auto) INLINE_LAMBDA {
    backward_block<T, A, MASK, vectors()>(net, tile, unit, kept, g, pitch, grad);
  });
}

// Passes over the rows of a member ---------------------------------------------------------------

// What a pass works with. The rows of a call are taken a chunk at a time.
template <class T> struct Work {
  const int64_t chunk;
  Packed<T> net, grad;
  Source<T> source;
  Buffer<Wide<T>> out;
  Buffer<T> z, g;   // (O, chunk): outputs of the chunk's rows, and their gradients
  const int64_t kept;  // so many rows of the chunk have their hidden units kept, whole tiles
  Buffer<T> units;     // (kept, width)

  Work(const Task& t, int64_t chunk, int64_t keep_bytes)
      : chunk(chunk), net(t), grad(t), source(t), out(t.outputs * TILE), z(t.outputs * chunk),
        g(t.outputs * chunk), kept(tiles_in(keep_bytes, chunk)), units(kept * net.width) {}
  // Where the hidden units of the tile from `row` on are, or null if they are not kept.
  T* kept_at(int64_t row) { return row < kept ? units + row * net.width : nullptr; }

 private:
  int64_t tiles_in(int64_t bytes, int64_t most) const {
    const int64_t rows = bytes / int64_t(net.width * sizeof(T)) / TILE * TILE;
    return rows < most ? rows : most;
  }
};

// Fill `z` for the chunk of member m that starts at row `first`; tiles whose `weights` (of the whole
// member, padded) are all zero are left out.
template <class T, class A, bool MASK>
void forward_chunk(Work<T>& work, int64_t m, int64_t first, const T* weights) {
  for (int64_t row = 0; row < work.chunk && first + row < work.source.t.rows; row += TILE) {
    bool needed = !weights;
    for (int r = 0; !needed && r < TILE; ++r) needed = weights[first + row + r] != 0;
    if (!needed) continue;
    const Tile<T> tile = work.source.tile(m, first + row);
    forward_tile<T, A, MASK>(work.net, tile, work.out, work.kept_at(row), work.z + row, work.chunk);
  }
}

// Add what the rows of the chunk contribute to `grad`, given `g`. Where a tile has none, it is
// left out.
template <class T, class A, bool MASK>
void backward_chunk(Work<T>& work, int64_t m, int64_t first) {
  for (int64_t row = 0; row < work.chunk && first + row < work.source.t.rows; row += TILE) {
    const T* g = work.g + row;
    bool needed = false;
    for (int64_t o = 0; !needed && o < work.net.O; ++o)
      for (int r = 0; !needed && r < TILE; ++r) needed = g[o * work.chunk + r] != 0;
    if (!needed) continue;
    const Tile<T> tile = work.source.tile(m, first + row);
    backward_tile<T, A, MASK>(work.net, tile, work.kept_at(row), g, work.chunk, work.grad);
  }
}

template <class T> struct Passes {
  void (*forward)(Work<T>&, int64_t, int64_t, const T*);
  void (*backward)(Work<T>&, int64_t, int64_t);
};
template <class T, class A> Passes<T> passes(bool masks) {
  if (masks) return {forward_chunk<T, A, true>, backward_chunk<T, A, true>};
  return {forward_chunk<T, A, false>, backward_chunk<T, A, false>};
}
template <class T> Passes<T> passes(const Task& t) {
  return t.tanh ? passes<T, Tanh>(t.masks != nullptr) : passes<T, Relu>(t.masks != nullptr);
}

// Operators --------------------------------------------------------------------------------------

constexpr int64_t CHUNK = 32;            // rows: whole tiles and whole vectors
constexpr int64_t KEEP_BYTES = 1 << 19;  // of hidden units; the rest is computed again

template <class T> const T* params_of(const Task& t, int64_t m) {
  return static_cast<const T*>(t.params) + m * t.columns;
}

template <class T> void forward(const Task& t, T* z) {
  const Passes<T> run = passes<T>(t);
  Work<T> work(t, CHUNK, 0);
  for (int64_t m = 0; m < t.members; ++m) {
    work.net.read(params_of<T>(t, m));
    work.source.read(m);
    for (int64_t first = 0; first < t.rows; first += CHUNK) {
      run.forward(work, m, first, nullptr);
      for (int64_t r = 0; r < CHUNK && first + r < t.rows; ++r)
        for (int64_t o = 0; o < t.outputs; ++o)
          z[(m * t.rows + first + r) * t.outputs + o] = work.z[o * CHUNK + r];
    }
  }
}

template <class T> void backward(const Task& t, const T* gz, T* gparams) {
  const Passes<T> run = passes<T>(t);
  Work<T> work(t, CHUNK, 0);
  for (int64_t m = 0; m < t.members; ++m) {
    work.net.read(params_of<T>(t, m));
    work.source.read(m);
    work.grad.clear();
    for (int64_t first = 0; first < t.rows; first += CHUNK) {
      work.g.clear();
      for (int64_t r = 0; r < CHUNK && first + r < t.rows; ++r)
        for (int64_t o = 0; o < t.outputs; ++o)
          work.g[o * CHUNK + r] = gz[(m * t.rows + first + r) * t.outputs + o];
      run.backward(work, m, first);
    }
    work.grad.write_gradient(params_of<T>(t, m), gparams + m * t.columns);
  }
}

// Targets, weights and quantiles of the rows of a member, padded with zeros to whole chunks.
template <class T> struct Targets {
  const Task& t;
  const Loss& loss;
  const int64_t height;
  Buffer<T> y, w, tau;  // (height), (height), (O, height)
  T count, weight;      // rows of weight other than 0, the sum of weights: of one pass

  Targets(const Task& task, const Loss& l)
      : t(task), loss(l), height(rounded_up(t.rows, CHUNK)), y(height), w(height),
        tau(t.outputs * height) {}

  void read(const Source<T>& source, int64_t m) {
    const T* targets = static_cast<const T*>(loss.y) + m * loss.y_stride;
    const T* weights = static_cast<const T*>(loss.weights) + m * t.height;
    if (t.index) {
      for (int64_t row = 0; row < t.batch; ++row) {
        const int64_t place = source.place(m, row);
        y[row] = targets[place], w[row] = weights[place];
      }
    } else {
      std::memcpy(y, targets, t.batch * sizeof(T));
      std::memcpy(w, weights, t.batch * sizeof(T));
    }
    Wide<T> counts, total;
    const Vec<T> one = Vec<T>{} + T(1);
    for (int64_t row = 0; row < t.batch; row += LANES<T>) {
      const Vec<T> own = load_part<T>(w + row, t.batch - row);
      counts.at(row) += own != 0 ? one : Vec<T>{};
      total.at(row) += own;
    }
    count = counts.sum(), weight = total.sum();
    for (int64_t at = t.batch; at < t.rows; at += t.batch) {
      std::memcpy(y + at, y, t.batch * sizeof(T));
      std::memcpy(w + at, w, t.batch * sizeof(T));
    }
  }
  // Drawn, or a constant for every output of every pass.
  void read_quantiles(int64_t m) {
    const T* drawn = static_cast<const T*>(loss.uniform);
    for (int64_t first = 0, pass = 0; first < t.rows; first += t.batch, ++pass)
      for (int64_t o = 0; o < t.outputs; ++o) {
        T* own = tau + o * height + first;
        const T constant = T(loss.constants[pass * t.outputs + o]);
        if (drawn)
          std::memcpy(own, drawn + m * loss.uniform_stride, t.batch * sizeof(T));
        else
          for (int64_t row = 0; row < t.batch; ++row) own[row] = constant;
      }
  }
};

// The loss of every member and its gradient, in one pass where the loss allows.
template <class T, class L> void loss_and_gradient(const Task& t, const Loss& l, bool quantiles, T* gparams) {
  const Passes<T> run = passes<T>(t);
  Targets<T> targets(t, l);
  const int64_t chunk = L::whole ? targets.height : CHUNK;
  Work<T> work(t, chunk, KEEP_BYTES);
  const auto lanes = [&](int64_t first, int64_t row, int part) {
    const int64_t at = first + row;
    return Lanes<T>{targets.y + at, targets.w + at, targets.tau + at, work.z + row,
                    work.g + row,   chunk,          targets.height,   part * LANES<T>};
  };
  for (int64_t m = 0; m < t.members; ++m) {
    work.net.read(params_of<T>(t, m));
    work.source.read(m);
    work.grad.clear();
    targets.read(work.source, m);
    if (quantiles) targets.read_quantiles(m);
    const About<T> about{l, m, t.outputs, targets.count, targets.weight};
    L loss(about);
    for (int64_t first = 0; first < t.rows; first += chunk) {
      run.forward(work, m, first, targets.w);
      for (int64_t row = 0; row < chunk; row += GROUP<T>)
        UNROLL
        for (int p = 0; p < PARTS<T>; ++p) loss.see(lanes(first, row + p * LANES<T>, p));
      if (L::whole)
        for (int64_t row = 0; row < chunk; row += LANES<T>) loss.settle(lanes(first, row, 0));
      run.backward(work, m, first);
    }
    static_cast<T*>(l.loss)[m] = loss.value();
    work.grad.write_gradient(params_of<T>(t, m), gparams + m * t.columns);
  }
}

template <class T> int64_t loss_and_gradient(const Task& t, const Loss& l, T* g) {
  switch (l.kind) {  // the order of KINDS in structs.py
    case 0: loss_and_gradient<T, MeanSquare<T>>(t, l, false, g); return 0;
    case 1: loss_and_gradient<T, Pinball<T>>(t, l, true, g); return 0;
    case 2: loss_and_gradient<T, QualityDriven<T, false>>(t, l, false, g); return 0;
    case 3: loss_and_gradient<T, QualityDriven<T, true>>(t, l, false, g); return 0;
    case 4: loss_and_gradient<T, Evidential<T>>(t, l, false, g); return 0;
    case 5: loss_and_gradient<T, Laplace<T>>(t, l, false, g); return 0;
    case 6: loss_and_gradient<T, Quantiles<T>>(t, l, false, g); return 0;
  }
  return 2;
}

}  // namespace

// One step of an optimiser. Mirrored field by field in structs.py.
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
  const double* shrink; // (M,) or null: decoupled decay, what kernels lose of themselves per rate
  const void* kernels;      // (P): 1 for the parameters that it is for, else 0
  void* average;            // (M, P) or null: the running mean of the parameters
  double old_share;         // how much of it the old one is
};

// Steps in a row. Mirrored field by field in structs.py.
struct Course {
  int64_t steps;
  int64_t index_step, uniform_step, column_step;  // from the numbers of one step to those of the next
  int64_t moves;            // whether what a loss leaves as `next` is its state[0] from then on
  const double* factors;    // (steps, 3): `correction`, `eps` and `old_share` of a Rule
  const int64_t *keys;      // (steps, M, 2), or null where nothing is dropped
  const int64_t *dropped;   // (M,), as for pi3nn_masks, which fills the masks of the Task
  void *best, *waited;      // (M,): the lowest loss, or null; and how many steps ago that was
  void *best_params;        // (M, P)
  int64_t patience;         // the steps end when a member has waited for so many
};

namespace {

// L1 and L2 of one kernel: its gradient is added to g, its value returned.
template <class T> T penalise(const T* w, T* g, int64_t count, T l1, T l2) {
  Wide<T> total;
  int64_t i = 0;
  for (const int64_t whole = count / GROUP<T> * GROUP<T>; i < whole; i += LANES<T>) {
    const Vec<T> v = load<T>(w + i), size = v < 0 ? -v : v;
    total.at(i) += (size * l2 + l1) * size;
    const Vec<T> push = size * (2 * l2) + l1;
    store<T>(g + i, load<T>(g + i) + (v > 0 ? push : v < 0 ? -push : Vec<T>{}));
  }
  T rest = 0;
  for (; i < count; ++i) {
    const T size = std::fabs(w[i]), push = size * (2 * l2) + l1;
    rest += (size * l2 + l1) * size;
    g[i] += w[i] > 0 ? push : w[i] < 0 ? -push : T(0);
  }
  return total.sum() + rest;
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
    const T lost = k.shrink ? T(k.rate[m * k.rate_stride] * k.shrink[m]) : T(0);
    const T* kernels = static_cast<const T*>(k.kernels);
    auto sound = Vec<T>{} == Vec<T>{};  // all true
    const auto finish = [&](int64_t i, Vec<T> u) {
      if (lost != 0) u = fused(lost * load<T>(kernels + i), load<T>(p + i), u);
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

// Make the update; move the running mean on.
template <class T> void apply(const Rule& k) {
  T* const params = static_cast<T*>(const_cast<void*>(k.params));
  T* const average = static_cast<T*>(k.average);
  const T* const update = static_cast<const T*>(k.update);
  const Vec<T> rest = Vec<T>{} + T(1 - k.old_share);
  for (int64_t i = 0; i < k.members * k.columns; i += LANES<T>) {
    const Vec<T> p = load<T>(params + i) - load<T>(update + i);
    store<T>(params + i, p);
    if (!average) continue;
    const Vec<T> old = load<T>(average + i);
    store<T>(average + i, fused(rest, p - old, old));
  }
}

// The dropout masks of one member, see dropout.py: a word decides on two places, half a mask apart.
template <class T>
void hash_masks(uint32_t key, uint32_t second, uint32_t dropped, int64_t count, T* out) {
  const T scale = T(65536.0 / (65536.0 - dropped));
  const int64_t half = (count + 1) / 2;
  const auto hashed = [=](uint32_t word) {
    word = word * 0x9e3779b1u + key;
    word = (word ^ word >> 16) * 0x7feb352du;
    word = ((word ^ word >> 15) + second) * 0x846ca68bu;
    return word ^ word >> 16;
  };
  T* const other = out + half;
  for (int64_t i = 0; i < count / 2; ++i) {
    const uint32_t word = hashed(uint32_t(i));
    out[i] = (word & 0xffff) >= dropped ? scale : T(0);
    other[i] = word >> 16 >= dropped ? scale : T(0);
  }
  if (half > count / 2) out[half - 1] = (hashed(uint32_t(half - 1)) & 0xffff) >= dropped ? scale : T(0);
}

template <class T>
void hash_masks(const int64_t* keys, const int64_t* dropped, int64_t members, int64_t count, T* out) {
  for (int64_t m = 0; m < members; ++m)
    hash_masks<T>(uint32_t(keys[2 * m]), uint32_t(keys[2 * m + 1]), uint32_t(dropped[m]), count,
                  out + m * count);
}

// Keep the parameters of members whose loss is the lowest so far; whether one has waited too long.
template <class T> bool watch(const Course& c, const Rule& k, const T* loss) {
  T *const best = static_cast<T*>(c.best), *const waited = static_cast<T*>(c.waited);
  bool late = false;
  for (int64_t m = 0; m < k.members; ++m) {
    const bool better = loss[m] < best[m];
    waited[m] = better ? T(0) : waited[m] + 1;
    late |= waited[m] >= c.patience;
    if (!better) continue;
    best[m] = loss[m];
    std::memcpy(static_cast<T*>(c.best_params) + m * k.columns,
                static_cast<const T*>(k.params) + m * k.columns, k.columns * sizeof(T));
  }
  return late;
}

// Learn and optimise, step by step, with the rates of one step beside those of the next. Ends before
// the update of a step after which a member would not be sound, and after that of one at which a member
// has waited too long; returns the number of updates made.
template <class T> int64_t make_steps(const Course& c, Task t, Loss l, Rule k, T* loss) {
  for (int64_t step = 0; step < c.steps; ++step) {
    const double* factors = c.factors + 3 * step;
    k.correction = factors[0], k.eps = factors[1], k.old_share = factors[2];
    if (c.keys)
      hash_masks<T>(c.keys + step * 2 * t.members, c.dropped, t.members, t.masks_stride * t.hidden,
                    static_cast<T*>(const_cast<void*>(t.masks)));
    loss_and_gradient<T>(t, l, static_cast<T*>(k.grad));
    if (optimise<T>(k, loss)) return step;
    const bool late = c.best && watch<T>(c, k, loss);
    apply<T>(k);
    if (c.moves) std::memcpy(const_cast<void*>(l.state[0]), l.next, t.members * sizeof(T));
    if (t.index) t.index += c.index_step;
    if (l.uniform) l.uniform = static_cast<const T*>(l.uniform) + c.uniform_step;
    if (t.column) t.column = static_cast<const T*>(t.column) + c.column_step;
    k.rate += 1;
    if (late) return step + 1;
  }
  return c.steps;
}

}  // namespace

// The functions of the library, for the type that it is built for. The first three return 0, or 1 if
// an index is not that of a row, or 2 for an unknown loss.
extern "C" {
#define PUBLIC __attribute__((visibility("default")))

PUBLIC int64_t pi3nn_forward(const Task* t, REAL* z) {
  if (!within(*t)) return 1;
  FlushDenormals flush;
  forward<REAL>(*t, z);
  return 0;
}

PUBLIC int64_t pi3nn_backward(const Task* t, const REAL* gz, REAL* g) {
  if (!within(*t)) return 1;
  FlushDenormals flush;
  backward<REAL>(*t, gz, g);
  return 0;
}

PUBLIC int64_t pi3nn_loss_and_gradient(const Task* t, const Loss* l, REAL* g) {
  if (!within(*t)) return 1;
  FlushDenormals flush;
  return loss_and_gradient<REAL>(*t, *l, g);
}

PUBLIC int64_t pi3nn_optimise(const Rule* k, REAL* loss) {
  FlushDenormals flush;
  return optimise<REAL>(*k, loss);
}

PUBLIC int64_t pi3nn_apply(const Rule* k) {
  FlushDenormals flush;
  apply<REAL>(*k);
  return 0;
}

PUBLIC int64_t pi3nn_make_steps(const Course* c, const Task* t, const Loss* l, const Rule* k) {
  Task each = *t;
  for (int64_t step = 0; step < c->steps; ++step, each.index += each.index ? c->index_step : 0)
    if (!within(each)) return -1;
  FlushDenormals flush;
  return make_steps<REAL>(*c, *t, *l, *k, static_cast<REAL*>(l->loss));
}

PUBLIC int64_t pi3nn_vector_bytes() { return VECTOR_BYTES; }

PUBLIC int64_t pi3nn_masks(const int64_t* keys, const int64_t* dropped, int64_t members,
                           int64_t count, REAL* out) {
  hash_masks<REAL>(keys, dropped, members, count, out);
  return 0;
}
}
