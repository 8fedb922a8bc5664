#include "parsimony/training/recovery/walk.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/training/recovery/ends.h"
#include "parsimony/training/statistics/side_by_side.h"

namespace parsimony::training {
namespace {

/// Holds only the weights that the part reads.
GraphModule lean(const Graph& part) {
  IdVector<WeightId, bool> read(part.weights.size(), false);
  for (const Node& node : part.nodes) {
    for_each_read(part, node, [&](ValueId v) {
      if (part.value(v).weight != kNone) read[part.value(v).weight] = true;
    });
  }
  std::vector<std::string> unread;
  for (const WeightId w : part.weights.ids()) {
    if (!read[w]) unread.push_back(part.weights[w].name);
  }
  std::ranges::sort(unread);
  const auto is_unread = [&](const Weight& weight) {
    return std::ranges::binary_search(unread, weight.name);
  };
  return GraphModule(part, GraphModuleOptions{.trainable = false, .streamed = is_unread});
}

}  // namespace

Walk::Walk(const Graph& graph, std::vector<ValueId> wanted)
    : graph_(graph),
      wanted_(std::move(wanted)),
      computed_(graph.nodes.size(), false),
      kept_(graph.values.size(), false) {
  for (const ValueId v : graph.inputs) kept_[v] = true;
}

std::vector<NodeId> Walk::needed_for(const std::vector<ValueId>& values) const {
  return nodes_for(graph_, values, computed_, kept_);
}

IdVector<ValueId, bool> Walk::read_by(const std::vector<NodeId>& nodes) const {
  IdVector<ValueId, bool> read(graph_.values.size(), false);
  for (const NodeId n : nodes) {
    for_each_read(graph_, graph_.nodes[n], [&](ValueId v) { read[v] = true; });
  }
  return read;
}

Graph Walk::part_of(const std::vector<NodeId>& nodes, std::vector<ValueId> outputs) const {
  Graph part = graph_;
  part.nodes.clear();
  for (const NodeId n : nodes) part.nodes.push_back(graph_.nodes[n]);
  part.inputs.clear();
  const IdVector<ValueId, bool> read = read_by(nodes);
  for (const ValueId v : read.ids()) {
    if (kept_[v] && (read[v] || contains(outputs, v))) part.inputs.push_back(v);
  }
  part.outputs = std::move(outputs);
  return part;
}

namespace {

/// Runs a part on the values that it takes.
std::vector<at::Tensor> run_part(GraphModule& module, const Graph& part,
                                 const IdVector<ValueId, at::Tensor>& values) {
  std::vector<at::Tensor> inputs;
  for (const ValueId v : part.inputs) inputs.push_back(values[v]);
  return module->forward(inputs);
}

}  // namespace

/// Keeps what nodes that are left read, what is wanted, and `extra`.
void Walk::run(const std::vector<NodeId>& nodes, const std::vector<ValueId>& extra) {
  for (const NodeId n : nodes) computed_[n] = true;
  const IdVector<ValueId, bool> read = read_by(needed_for(wanted_));
  std::vector<ValueId> keep;
  for (const NodeId n : nodes) {
    if (graph_.nodes[n].body != kNone) continue;
    for (const ValueId v : graph_.nodes[n].outputs) {
      if (v != kNone && (read[v] || contains(wanted_, v) || contains(extra, v))) keep.push_back(v);
    }
  }
  if (keep.empty()) return;
  const Graph part = part_of(nodes, keep);
  GraphModule module = lean(part);
  side_by_side(batches(), [&](int64_t b) {
    Tensors& batch = batches_[b];
    std::vector<at::Tensor> found = run_part(module, part, batch);
    for (size_t i = 0; i < keep.size(); ++i) batch[keep[i]] = std::move(found[i]);
  });
  for (const ValueId v : keep) kept_[v] = true;
}

std::vector<at::Tensor> Walk::compute(ValueId value) {
  run(needed_for({value}), {value});
  std::vector<at::Tensor> found;
  for (const Tensors& batch : batches_) found.push_back(batch[value]);
  return found;
}

std::vector<at::Tensor> Walk::behind(WeightId weight, ValueId value) {
  IdVector<ValueId, bool> depends(graph_.values.size(), false);
  std::vector<NodeId> before;
  std::vector<NodeId> after;
  for (const NodeId n : needed_for({value})) {
    bool is_after = false;
    for_each_read(graph_, graph_.nodes[n],
                  [&](ValueId v) { is_after |= depends[v] || graph_.value(v).weight == weight; });
    (is_after ? after : before).push_back(n);
    if (!is_after) continue;
    for (const ValueId v : graph_.nodes[n].outputs) {
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
  GraphModule module = lean(part);
  std::vector<at::Tensor> found(batches_.size());
  side_by_side(batches(),
               [&](int64_t b) { found[b] = run_part(module, part, batches_[b]).front(); });
  return found;
}

void Walk::finish(ValueId value) {
  wanted_.erase(std::ranges::find(wanted_, value));
  const IdVector<ValueId, bool> read = read_by(needed_for(wanted_));
  for (const ValueId v : kept_.ids()) {
    if (!kept_[v] || read[v] || contains(wanted_, v)) continue;
    kept_[v] = false;
    for (Tensors& batch : batches_) batch[v].reset();
  }
}

int64_t Walk::add(const Feed& feed, int64_t count) {
  std::vector<ValueId> outputs;
  for (const ValueId v : kept_.ids()) {
    if (kept_[v]) outputs.push_back(v);
  }
  Walk whole(graph_, outputs);
  const Graph part = whole.part_of(whole.needed_for(outputs), outputs);
  GraphModule module = lean(part);
  int64_t added = 0;
  while (added < count) {
    const int most = static_cast<int>(std::min<int64_t>(batches_at_once(), count - added));
    const std::vector<SampleBatch> group = next_group(feed, most);
    if (group.empty()) break;
    const auto first = static_cast<int64_t>(batches_.size());
    batches_.resize(batches_.size() + group.size());
    side_by_side(std::ssize(group), [&](int64_t g) {
      Tensors batch(graph_.values.size());
      for (size_t i = 0; i < graph_.inputs.size(); ++i) {
        batch[graph_.inputs[i]] = group[g].inputs[i];
      }
      std::vector<at::Tensor> found = run_part(module, part, batch);
      Tensors kept(graph_.values.size());
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
  for (const Tensors& batch : batches_) {
    for (const at::Tensor& tensor : batch) {
      if (tensor.defined()) sum += static_cast<int64_t>(tensor.nbytes());
    }
  }
  return sum;
}

bool Walks::grow_to(int64_t count) {
  const int64_t before = this->count();
  if (before > 0) {
    count = std::min(count, fits());
  } else if (count > 1 && grow_to(1)) {  // to see how large one is
    grow_to(count);
    return true;
  }
  if (count <= before || (limit_ && before >= *limit_)) return false;
  for (Walk& walk : walks_) {
    const Feed feed = feed_of(&walk == &walks_.back());
    for (int64_t i = 0; i < before; ++i) feed();
    const int64_t added = walk.add(feed, count - before);
    if (added < count - before) limit_ = before + added;
  }
  shrink();
  return this->count() > before;
}

void Walks::shrink() {
  const int64_t fit = std::max<int64_t>(1, fits());
  if (fit >= count()) return;
  for (Walk& walk : walks_) walk.truncate(fit);
}

int64_t Walks::fits() const {
  int64_t bytes = 0;
  for (const Walk& walk : walks_) bytes += walk.bytes();
  return bytes == 0 ? std::numeric_limits<int64_t>::max() : count() * most_bytes_ / bytes;
}

Feed Walks::feed_of(bool small) const {
  Feed feed = batches_(size_);
  return small ? small_feed(small_, std::move(feed)) : feed;
}

}  // namespace parsimony::training
