#include "parsimony/pruners/given_scores.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/masks/tensor_file.h"

namespace parsimony {
namespace {

/// Splits "NAME@AXIS".
std::pair<std::string, int> place_of(const std::string& name, const std::string& path) {
  const size_t at = name.rfind('@');
  int axis = -1;
  if (at != std::string::npos) {
    const char* end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + at + 1, end, axis);
    if (read.ptr != end) axis = -1;
  }
  if (axis < 0) {
    throw ModelError(path, ": found ", in_quotes(name), ", expected the name of a weight and an ",
                     "axis, as \"fc.weight@1\"");
  }
  return {name.substr(0, at), axis};
}

}  // namespace

GivenScores read_scores(const std::string& path) {
  const std::string bytes = read_file(path);
  GivenScores given;
  for (const FileTensor& tensor : parse_tensors(bytes, path)) {
    if (tensor.dims.size() != 1 || !is_floating(tensor.dtype)) {
      throw ModelError(path, ": ", in_quotes(tensor.name), " is no vector of floating-point ",
                       "numbers");
    }
    std::vector<double> scores = to_host(Weight{tensor.name, tensor.dtype, tensor.dims,
                                                tensor.data.data(), size_of(tensor.dtype)})
                                     .floats;
    if (!std::ranges::all_of(scores, [](double s) { return std::isfinite(s); })) {
      throw ModelError(path, ": ", in_quotes(tensor.name), " has a number that is not finite");
    }
    given[place_of(tensor.name, path)] = std::move(scores);
  }
  return given;
}

void check_scores(const Graph& graph, const GivenScores& given) {
  for (const auto& [place, scores] : given) {
    const auto& [name, axis] = place;
    const auto weight = std::ranges::find(graph.weights, name, &Weight::name);
    if (weight == graph.weights.end()) {
      throw ModelError("scores: the network has no weight ", in_quotes(name));
    }
    const bool fits = axis < std::ssize(weight->dims) && weight->dims[axis] == std::ssize(scores);
    if (!fits) {
      throw ModelError("scores: found ", std::ssize(scores), " for axis ", axis, " of ",
                       in_quotes(name), ", whose shape is ", to_string(weight->dims));
    }
  }
}

Scores given_scores(const Graph& graph, const Group& group, const GivenScores& given) {
  Scores sums;
  std::set<std::pair<std::string, int>> seen;  // several nodes may read one weight
  for (const Member& member : group.members) {
    const std::pair place{graph.weight_of(member.value).name, member.axis};
    const auto scores = given.find(place);
    if (scores == given.end() || !seen.insert(place).second) continue;
    sums.resize(group.size);
    for (int c = 0; c < group.size; ++c) {
      for (const int64_t index : member.of(c)) sums[c] += scores->second[index];
    }
  }
  return sums;
}

}  // namespace parsimony
