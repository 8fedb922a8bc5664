#include "parsimony/api/recovery/output_error.h"

#include <algorithm>
#include <utility>

#include "parsimony/api/network_error.h"
#include "parsimony/api/recovery/walk.h"
#include "parsimony/base/ranges.h"

namespace parsimony {
namespace {

/// Adds the errors of outputs. What a state holds counts by what the outputs make of it: it is
/// compared only where there are no other numbers.
void add_outputs(const TensorList& found, const TensorList& target, const Graph& dense,
                 const std::vector<ValueId>& fed_back, OutputError& error) {
  const size_t outputs = std::min(target.size(), found.size());
  const auto is_other = [&](size_t o) {
    return is_floating(target[o].dtype) && !contains(fed_back, dense.outputs[o]);
  };
  bool others = false;
  for (size_t o = 0; o < outputs; ++o) others = others || is_other(o);
  for (size_t o = 0; o < outputs; ++o) {
    if (!others || is_other(o)) error.add(found[o], target[o]);
  }
}

}  // namespace

InputSlicer slicer_of(const SmallNetwork& small) {
  Plan ends;
  ends.ends = small.ends();
  return {small.graph(), ends};
}

double output_error(Engine& engine, Part& dense, const SmallNetwork& small, const ValueSource& feed,
                    const ValueSource& small_feed, KnownOutputs& known) {
  Part small_part(engine, small.graph());
  const InputSlicer cut = slicer_of(small);
  OutputError error;
  for (int64_t first = 0;;) {
    const std::vector<ValueBatch> group = next_group(feed, engine.at_once());
    const std::vector<ValueBatch> others = next_group(small_feed, std::ssize(group));
    if (group.empty()) return error.relative();
    std::vector<TensorList> computed(group.size());
    std::vector<OutputError> errors(group.size());
    engine.side_by_side(std::ssize(group), [&](int64_t b) {
      const TensorList* expected = known.find(first + b);
      if (expected == nullptr) {
        computed[b] = on_host(dense.run(group[b].inputs));
        expected = &computed[b];
      }
      const TensorList target = cut.small_outputs(*expected);
      const TensorList found = on_host(small_part.run(others[b].inputs));
      add_outputs(found, target, dense.graph(), group[b].fed_back, errors[b]);
    });
    for (const OutputError& of_batch : errors) error.add(of_batch);
    for (int64_t b = 0; b < std::ssize(group); ++b) {
      if (known.find(first + b) == nullptr) known.add(first + b, std::move(computed[b]));
    }
    first += std::ssize(group);
  }
}

void KnownOutputs::add(int64_t b, TensorList outputs) {
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  for (const TensorBytes& output : outputs) bytes_ += std::ssize(output.bytes);
  if (b == std::ssize(known_) && bytes_ <= kMostBytes) known_.push_back(std::move(outputs));
}

}  // namespace parsimony
