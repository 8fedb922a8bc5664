// The built-in data set: one drawn figure per image, of ten kinds. All arithmetic is on integers,
// so that every platform draws the same bytes.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "parsimony/base/parallel.h"
#include "parsimony/base/random.h"
#include "parsimony/data/errors.h"
#include "parsimony/data/formats_impl.h"

namespace parsimony {
namespace {

constexpr int32_t kSide = 32;
constexpr int32_t kPlane = kSide * kSide;
constexpr int32_t kPixel = 256;  // positions count 1/256 of a pixel
constexpr int32_t kUnit = 1024;  // within a figure, its size is 1024
constexpr int32_t kGrid = 2;     // points per pixel and direction: smooth edges

// Difficulty of the data set; see docs/results/data_sets.md for accuracies.
constexpr int32_t kMinSize = 8 * kPixel;
constexpr int32_t kMaxSize = 12 * kPixel;
constexpr int32_t kMargin = 11 * kPixel;  // between the centre and the border
constexpr int32_t kMaxTurn = 2365;        // tangent of 30 degrees in 1/4096
constexpr int32_t kMinContrast = 180;  // the figure is brighter by so much, summed over the colours
constexpr int32_t kMaxNoise = 40;
constexpr int32_t kMaxClutter = 3;
constexpr int32_t kMaxShade = 24;  // of 256: how much the ground takes of another colour

constexpr int64_t kTrainDefault = 10'000;
constexpr int64_t kTestDefault = 2'000;
constexpr int64_t kMaxCount = 10'000'000;

/// A point relative to the figure: turned back, and in its units.
struct Point {
  int32_t x = 0;
  int32_t y = 0;
};

constexpr int32_t square_of(int32_t x) { return x * x; }

bool in_disc(Point p, int32_t radius) {
  return square_of(p.x) + square_of(p.y) <= square_of(radius);
}

bool in_box(Point p, int32_t half_width, int32_t half_height) {
  return std::abs(p.x) <= half_width && std::abs(p.y) <= half_height;
}

bool in_circle(Point p) { return in_disc(p, 960); }

bool in_ring(Point p) { return in_disc(p, 1024) && !in_disc(p, 560); }

bool in_crescent(Point p) { return in_disc(p, 1024) && !in_disc({p.x - 480, p.y}, 800); }

bool in_square(Point p) { return in_box(p, 832, 832); }

bool in_frame(Point p) { return in_box(p, 896, 896) && !in_box(p, 480, 480); }

bool in_bar(Point p) { return in_box(p, 1100, 300); }

bool in_triangle(Point p) {
  const int32_t slope = 1774;  // square root of 3 in 1/1024
  return p.y <= 580 && p.y >= -1160 + std::abs(p.x) * slope / kUnit;
}

bool in_cross(Point p) { return in_box(p, 1024, 320) || in_box(p, 320, 1024); }

bool in_ell(Point p) { return in_box(p, 850, 850) && !in_box({p.x - 300, p.y + 300}, 550, 550); }

/// Returns whether a point is in a pentagram: inside of at least four of its five lines.
bool in_star(Point p) {
  constexpr std::array<Point, 5> kNormals = {
      {{0, 1024}, {974, 316}, {602, -828}, {-602, -828}, {-974, 316}}};
  constexpr int32_t kDistance = 380;
  int outside = 0;
  for (const Point n : kNormals) outside += n.x * p.x + n.y * p.y > kDistance * kUnit ? 1 : 0;
  return outside <= 1;
}

struct Figure {
  const char* name;
  bool (*contains)(Point);
};

constexpr std::array<Figure, 10> kFigures = {{
    {"circle", in_circle},
    {"square", in_square},
    {"triangle", in_triangle},
    {"star", in_star},
    {"cross", in_cross},
    {"ring", in_ring},
    {"crescent", in_crescent},
    {"frame", in_frame},
    {"bar", in_bar},
    {"ell", in_ell},
}};

using Colour = std::array<int32_t, 3>;

Colour draw_colour(Random& random) {
  Colour colour{};
  for (int32_t& part : colour) part = random.between(0, 255);
  return colour;
}

int32_t brightness(const Colour& colour) { return colour[0] + colour[1] + colour[2]; }

int32_t root_of(int32_t x) {
  int32_t root = 0;
  for (int32_t bit = 1 << 15; bit > 0; bit >>= 1) {
    const int64_t next = root + bit;
    if (next * next <= x) root += bit;
  }
  return root;
}

/// Returns a vector of length 4096 in the direction of `p`, whose parts are at most 4096.
Point unit_vector(Point p) {
  const int32_t length = root_of(square_of(p.x) + square_of(p.y));
  return {p.x * 4096 / length, p.y * 4096 / length};
}

/// Draws a slight turn to either side.
Point draw_turn(Random& random) { return unit_vector({4096, random.between(-kMaxTurn, kMaxTurn)}); }

/// Draws any direction.
Point draw_direction(Random& random) {
  for (;;) {
    const Point p{random.between(-4096, 4096), random.between(-4096, 4096)};
    if (square_of(p.x) + square_of(p.y) > 256 * 256) return unit_vector(p);
  }
}

class Canvas {
 public:
  explicit Canvas(Random& random) : random_(random) {}

  /// Fills the ground with a slight gradient between two colours.
  void fill(const Colour& colour) {
    const Colour other = draw_colour(random_);
    const Point direction = draw_direction(random_);
    for (int32_t i = 0; i < kPlane; ++i) {
      const int32_t x = i % kSide - kSide / 2;
      const int32_t y = i / kSide - kSide / 2;
      const int32_t share = kMaxShade + (x * direction.x + y * direction.y) * kMaxShade / 24 / 4096;
      for (size_t c = 0; c < colour.size(); ++c) {
        at(c, i) = colour[c] + (other[c] - colour[c]) * share / 256;
      }
    }
  }

  void draw(bool (*contains)(Point), Point centre, int32_t size, Point turn, const Colour& colour) {
    const int32_t reach = size * 5 / 4;  // no figure is further from its centre
    const auto first = [&](int32_t x) { return std::max(0, (x - reach) / kPixel); };
    const auto last = [&](int32_t x) { return std::min(kSide - 1, (x + reach) / kPixel); };
    for (int32_t y = first(centre.y); y <= last(centre.y); ++y) {
      for (int32_t x = first(centre.x); x <= last(centre.x); ++x) {
        int32_t covered = 0;
        for (int32_t i = 0; i < kGrid * kGrid; ++i) {
          const int32_t step = kPixel / kGrid;
          const int32_t dx = x * kPixel + step / 2 + i % kGrid * step - centre.x;
          const int32_t dy = y * kPixel + step / 2 + i / kGrid * step - centre.y;
          const Point p{(turn.x * dx + turn.y * dy) / 4096, (turn.x * dy - turn.y * dx) / 4096};
          covered += contains({p.x * kUnit / size, p.y * kUnit / size}) ? 1 : 0;
        }
        mix_in(y * kSide + x, colour, covered);
      }
    }
  }

  /// Adds noise, and writes [3, 32, 32].
  void finish(int32_t noise, std::byte* out) {
    for (size_t i = 0; i < values_.size(); i += 4) {
      uint64_t bits = random_.next();
      for (size_t j = i; j < i + 4; ++j, bits >>= 16) {
        // The sum of two uniform numbers, in -255 … 255.
        const auto sum = static_cast<int32_t>((bits & 255) + (bits >> 8 & 255)) - 255;
        const int32_t value = values_[j] + sum * noise / 256;
        out[j] = static_cast<std::byte>(std::clamp(value, 0, 255));
      }
    }
  }

 private:
  int32_t& at(size_t channel, int32_t pixel) { return values_[channel * kPlane + pixel]; }

  void mix_in(int32_t pixel, const Colour& colour, int32_t covered) {
    constexpr int32_t kPoints = kGrid * kGrid;
    if (covered == 0) return;
    for (size_t c = 0; c < colour.size(); ++c) {
      int32_t& value = at(c, pixel);
      value = (value * (kPoints - covered) + colour[c] * covered) / kPoints;
    }
  }

  Random& random_;
  std::array<int32_t, 3 * kPlane> values_{};
};

Point draw_place(Random& random, int32_t margin) {
  const int32_t last = kSide * kPixel - margin;
  return {random.between(margin, last), random.between(margin, last)};
}

/// Draws one image of [3, 32, 32]. @returns its class
int64_t draw_image(Random random, std::byte* out) {
  const uint32_t label = random.below(kFigures.size());
  Colour ground = draw_colour(random);
  Colour colour = draw_colour(random);
  while (brightness(colour) - brightness(ground) < kMinContrast) {
    ground = draw_colour(random);
    colour = draw_colour(random);
  }

  Canvas canvas(random);
  canvas.fill(ground);
  for (int32_t i = random.between(0, kMaxClutter); i > 0; --i) {
    const Point place = draw_place(random, 0);
    const int32_t size = random.between(kPixel, 2 * kPixel);
    const Point turn = draw_direction(random);
    canvas.draw(in_bar, place, size, turn, draw_colour(random));
  }
  const Point place = draw_place(random, kMargin);
  const int32_t size = random.between(kMinSize, kMaxSize);
  canvas.draw(kFigures[label].contains, place, size, draw_turn(random), colour);
  canvas.finish(random.between(0, kMaxNoise), out);
  return label;
}

/// Draws images; `part` separates training from test images.
Samples draw_part(int64_t count, uint64_t part, const DatasetOptions& options) {
  Samples samples;
  samples.dims = {3, kSide, kSide};
  samples.labels.resize(count);
  samples.values.resize(count * samples.stride());
  const size_t stride = samples.stride();
  parallel_for(count, options.threads, [&](int64_t i) {
    const size_t index = i;
    const Random random(options.seed, part, index);
    samples.labels[index] = draw_image(random, samples.values.data() + index * stride);
  });
  return samples;
}

/// Parses "10000,2000".
std::array<int64_t, 2> counts_of(const std::string& text) {
  std::array<int64_t, 2> counts = {kTrainDefault, kTestDefault};
  if (text.empty()) return counts;
  const char* at = text.data();
  const char* end = at + text.size();
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto [stop, failed] = std::from_chars(at, end, counts[i]);
    const bool last = i + 1 == counts.size();
    if (failed != std::errc() || counts[i] < 1 || counts[i] > kMaxCount ||
        (last ? stop != end : stop == end || *stop != ',')) {
      throw errors::bad_spec("shapes:" + text, "shapes:TRAIN,TEST, numbers from 1 to 10000000");
    }
    at = stop + 1;
  }
  return counts;
}

}  // namespace

Dataset draw_shapes(const std::string& counts, const DatasetOptions& options) {
  const auto [train, test] = counts_of(counts);
  Dataset data;
  data.name = "shapes";
  for (const Figure& figure : kFigures) data.classes.emplace_back(figure.name);
  data.train = draw_part(std::min(train, options.train_samples.value_or(train)), 0, options);
  data.test = draw_part(std::min(test, options.test_samples.value_or(test)), 1, options);
  return data;
}

}  // namespace parsimony
