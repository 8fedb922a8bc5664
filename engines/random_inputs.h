// Random inputs, for benchmarks and comparisons.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/interface.h"

namespace parsimony::runtime {

/// Upper bounds of random integers, tried in order until the network accepts them: first for bytes
/// and word indices, last for flags. What indexes a table directly is below its number of rows.
inline constexpr std::array<int64_t, 3> kIntegerRanges = {256, 127, 2};

/// Distributions of random floats, tried in order until the network yields finite outputs:
/// logarithms and roots of normally distributed values do not.
enum class Floats : uint8_t {
  kNormal,
  kUnit,     ///< [0, 1): pictures, probabilities
  kNearOne,  ///< [0.5, 1.5)
};
inline constexpr std::array<Floats, 3> kFloats = {Floats::kNormal, Floats::kUnit, Floats::kNearOne};

/// "normally distributed", "between 0 and 1", …
std::string_view name_of(Floats floats);

/// The distributions from which random elements are drawn.
struct Draw {
  int64_t below = kIntegerRanges.front();  ///< integers are drawn from [0, below)
  Floats floats = Floats::kNormal;
};

struct RandomInputOptions {
  std::vector<InputSpec> specs = {};  ///< those of --input
  /// Replaces the first dimension if it is symbolic, as always in TorchScript. Without it, a
  /// symbolic dimension is 1 or that of `specs`.
  std::optional<int64_t> batch = std::nullopt;
  uint64_t seed = 1;
  int64_t below = 256;  ///< integers are drawn from [0, below)
};

/// Returns one tensor per input of the graph: floats normally distributed, integers in [0, below),
/// or in [0, 2) if the name suggests a mask or flag, and the values given by `specs`. Inputs with
/// the same index, type and shape have the same elements in all networks.
/// @throws UnsupportedError if a shape is unknown, the file fixes another batch, or for strings
TensorList random_inputs(const Graph& graph, const RandomInputOptions& options = {});
/// Returns random inputs with the shapes inferred with `probe`, and its values.
TensorList random_inputs(const Graph& graph, const Probe& probe, uint64_t seed,
                         const Draw& draw = {});

/// Returns floats multiplied by random factors from 0.5 to 1.5; other elements unchanged.
TensorBytes varied(TensorBytes tensor, uint64_t seed);

/// Returns the number of samples per run: the leading dimension of the first input that has two or
/// more; 1 if none has.
int64_t batch_of(const TensorList& inputs);

}  // namespace parsimony::runtime
