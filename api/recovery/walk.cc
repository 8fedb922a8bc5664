#include "parsimony/api/recovery/walk.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/speedup/fit_layers.h"

namespace parsimony {
namespace {

/// Runs a part on its input values.
EngineValues run_part(Part& opened, const Graph& part,
                      const IdVector<ValueId, EngineValue>& values) {
  EngineValues inputs;
  for (const ValueId v : part.inputs) inputs.push_back(values[v]);
  return opened.run(inputs);
}

// Batches that were dropped are computed again only where so many times more fit into memory than
// there are: else the next layer drops them again.
constexpr int64_t kMuchMore = 2;

}  // namespace

std::vector<ValueBatch> next_group(const ValueSource& feed, int64_t most) {
  std::vector<ValueBatch> group;
  while (std::ssize(group) < most) {
    std::optional<ValueBatch> batch = feed();
    if (!batch) break;
    group.push_back(std::move(*batch));
    if (!group.back().fed_back.empty()) break;
  }
  return group;
}

Walk::Walk(Engine& engine, const Graph& graph, std::vector<ValueId> target)
    : engine_(&engine),
      graph_(&graph),
      target_(std::move(target)),
      computed_(graph.nodes.size(), false),
      kept_(graph.values.size(), false) {
  for (const ValueId v : graph.inputs) kept_[v] = true;
}

std::vector<NodeId> Walk::needed_for(const std::vector<ValueId>& values) const {
  return nodes_for(*graph_, values, computed_, kept_);
}

IdVector<ValueId, bool> Walk::read_by(const std::vector<NodeId>& nodes) const {
  IdVector<ValueId, bool> read(graph_->values.size(), false);
  for (const NodeId n : nodes) {
    for_each_read(*graph_, graph_->nodes[n], [&](ValueId v) { read[v] = true; });
  }
  return read;
}

Graph Walk::part_of(const std::vector<NodeId>& nodes, std::vector<ValueId> outputs) const {
  Graph part = *graph_;
  part.nodes.clear();
  for (const NodeId n : nodes) part.nodes.push_back(graph_->nodes[n]);
  part.inputs.clear();
  const IdVector<ValueId, bool> read = read_by(nodes);
  for (const ValueId v : read.ids()) {
    if (kept_[v] && (read[v] || contains(outputs, v))) part.inputs.push_back(v);
  }
  part.outputs = std::move(outputs);
  return part;
}

/// Keeps the values read by remaining nodes, the targets, and `extra`.
void Walk::run(const std::vector<NodeId>& nodes, const std::vector<ValueId>& extra) {
  for (const NodeId n : nodes) computed_[n] = true;
  const IdVector<ValueId, bool> read = read_by(needed_for(target_));
  std::vector<ValueId> keep;
  for (const NodeId n : nodes) {
    if (graph_->nodes[n].body != kNone) continue;
    for (const ValueId v : graph_->nodes[n].outputs) {
      if (v != kNone && (read[v] || contains(target_, v) || contains(extra, v))) keep.push_back(v);
    }
  }
  if (keep.empty()) return;
  const Graph part = part_of(nodes, keep);
  Part opened(*engine_, part);
  engine_->side_by_side(batches(), [&](int64_t b) {
    Values& batch = batches_[b];
    EngineValues found = run_part(opened, part, batch);
    for (size_t i = 0; i < keep.size(); ++i) batch[keep[i]] = std::move(found[i]);
  });
  for (const ValueId v : keep) kept_[v] = true;
}

EngineValues Walk::compute(ValueId value) {
  run(needed_for({value}), {value});
  EngineValues found;
  for (const Values& batch : batches_) found.push_back(batch[value]);
  return found;
}

EngineValues Walk::after(WeightId weight, ValueId value) {
  IdVector<ValueId, bool> depends(graph_->values.size(), false);
  std::vector<NodeId> before;
  std::vector<NodeId> after;
  for (const NodeId n : needed_for({value})) {
    bool is_after = false;
    for_each_read(*graph_, graph_->nodes[n],
                  [&](ValueId v) { is_after |= depends[v] || graph_->value(v).weight == weight; });
    (is_after ? after : before).push_back(n);
    if (!is_after) continue;
    for (const ValueId v : graph_->nodes[n].outputs) {
      if (v != kNone) depends[v] = true;
    }
  }
  std::vector<ValueId> extra;
  const IdVector<ValueId, bool> read = read_by(after);
  for (const ValueId v : read.ids()) {
    if (read[v]) extra.push_back(v);
  }
  run(before, extra);
  const Graph part = part_of(after, {value});
  Part opened(*engine_, part);
  EngineValues found(batches_.size());
  engine_->side_by_side(batches(),
                        [&](int64_t b) { found[b] = run_part(opened, part, batches_[b]).front(); });
  return found;
}

void Walk::finish(ValueId value) {
  target_.erase(std::ranges::find(target_, value));
  const IdVector<ValueId, bool> read = read_by(needed_for(target_));
  for (const ValueId v : kept_.ids()) {
    if (!kept_[v] || read[v] || contains(target_, v)) continue;
    kept_[v] = false;
    for (Values& batch : batches_) batch[v].reset();
  }
}

int64_t Walk::add(const ValueSource& feed, int64_t count) {
  std::vector<ValueId> outputs;
  for (const ValueId v : kept_.ids()) {
    if (kept_[v]) outputs.push_back(v);
  }
  const Walk whole(*engine_, *graph_, outputs);
  const Graph part = whole.part_of(whole.needed_for(outputs), outputs);
  Part opened(*engine_, part);
  int64_t added = 0;
  while (added < count) {
    const int64_t most = std::min<int64_t>(engine_->at_once(), count - added);
    const std::vector<ValueBatch> group = next_group(feed, most);
    if (group.empty()) break;
    is_stream_ = is_stream_ || !group.front().fed_back.empty();
    const auto first = static_cast<int64_t>(batches_.size());
    batches_.resize(batches_.size() + group.size());
    engine_->side_by_side(std::ssize(group), [&](int64_t g) {
      Values batch(graph_->values.size());
      for (size_t i = 0; i < graph_->inputs.size(); ++i) {
        batch[graph_->inputs[i]] = group[g].inputs[i];
      }
      EngineValues found = run_part(opened, part, batch);
      Values kept(graph_->values.size());
      for (size_t i = 0; i < outputs.size(); ++i) kept[outputs[i]] = std::move(found[i]);
      batches_[first + g] = std::move(kept);
    });
    added += std::ssize(group);
  }
  return added;
}

void Walk::truncate(int64_t batches) {
  batches_.resize(static_cast<size_t>(std::min(batches, this->batches())));
}

int64_t Walk::bytes() const {
  int64_t sum = 0;
  for (const Values& batch : batches_) {
    for (const EngineValue& value : batch) {
      if (value) sum += bytes_of(value);
    }
  }
  return sum;
}

bool Walks::grow_to(int64_t count) {
  const int64_t before = this->count();
  if (before > 0) {
    const int64_t fit = fits();
    if (has_dropped_ && before >= kHeldOutPeriod && fit < kMuchMore * before) return false;
    count = std::min(count, fit);
  } else if (count > 1 && grow_to(1)) {  // to see how large one is
    grow_to(count);
    return true;
  }
  if (count <= before || (limit_ && before >= *limit_)) return false;
  for (size_t w = 0; w < walks_.size(); ++w) {
    const ValueSource feed = feed_of_(w);
    for (int64_t i = 0; i < before; ++i) feed();
    const int64_t added = walks_[w].add(feed, count - before);
    if (added < count - before) limit_ = before + added;
  }
  shrink();
  return this->count() > before;
}

void Walks::shrink() {
  const int64_t fit = std::max<int64_t>(1, fits());
  if (fit >= count()) return;
  has_dropped_ = true;
  for (Walk& walk : walks_) walk.truncate(fit);
}

int64_t Walks::fits() const {
  int64_t bytes = 0;
  for (const Walk& walk : walks_) bytes += walk.bytes();
  return bytes == 0 ? std::numeric_limits<int64_t>::max() : count() * most_bytes_ / bytes;
}

}  // namespace parsimony
