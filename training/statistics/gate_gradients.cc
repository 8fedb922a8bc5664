#include <utility>

#include "parsimony/training/statistics/gradients.h"
#include "parsimony/training/statistics/scatter_impl.h"

namespace parsimony::training {

Gated with_gates(const Graph& graph, const std::vector<Site>& sites) {
  static constexpr float kOne = 1;
  Gated gated{graph, {}};
  IdVector<NodeId, Node>& nodes = gated.graph.nodes;
  Weight one{"gate of one", DType::kFloat32, {}, reinterpret_cast<const std::byte*>(&kOne), 4};
  const ValueId factor = gated.graph.values.push_back(
      {.name = one.name, .dtype = DType::kFloat32, .weight = gated.graph.weights.push_back(one)});
  std::map<std::pair<NodeId, int>, ValueId> known;
  std::map<NodeId, std::vector<Node>> before;
  for (const Site& site : sites) {
    if (site.reader == kNone) {
      gated.gates.push_back(site.value);
      continue;
    }
    const auto [place, is_new] = known.emplace(std::pair{site.reader, site.input}, kNone);
    if (is_new) {
      const auto value = gated.graph.values.next_id();
      place->second = value;
      // This producer will do for as long as nobody asks more than whether there is one.
      gated.graph.values.push_back(
          {.name = "gate " + std::to_string(value.number()), .producer = site.reader});
      Node gate;
      gate.op = "Mul";
      gate.body = nodes[site.reader].body;
      gate.opset = nodes[site.reader].opset;
      gate.inputs = {site.value, factor};
      gate.outputs = {value};
      before[site.reader].push_back(gate);
      nodes[site.reader].inputs[site.input] = value;
    }
    gated.gates.push_back(place->second);
  }
  IdVector<NodeId, Node> all;
  for (const NodeId n : nodes.ids()) {
    for (Node& gate : before[n]) all.push_back(std::move(gate));
    all.push_back(std::move(nodes[n]));
  }
  nodes = std::move(all);
  return gated;
}

GateGradients::GateGradients(const Coupling& coupling, const std::vector<Site>& sites,
                             std::vector<ValueId> gates)
    : reached_(coupling.groups.size()) {
  for (const Group& group : coupling.groups)
    squares_.push_back(at::zeros({group.size}, at::kDouble));
  for (size_t s = 0; s < sites.size(); ++s) {
    by_value_[gates[s]].push_back(s);
    gates_.push_back({sites[s].group, sites[s].dim, at::tensor(sites[s].channels, at::kLong)});
  }
}

void GateGradients::see(ValueId value, const at::Tensor& x) {
  const auto found = by_value_.find(value);
  if (found == by_value_.end() || !x.requires_grad()) return;
  for (const size_t gate : found->second) seen_.emplace_back(gate, x);
}

std::vector<at::Tensor> GateGradients::seen() const {
  std::vector<at::Tensor> tensors;
  for (const auto& [gate, x] : seen_) tensors.push_back(x);
  return tensors;
}

std::vector<at::Tensor> GateGradients::forget_seen() {
  std::vector<at::Tensor> tensors = seen();
  seen_.clear();
  return tensors;
}

std::optional<GateGradients::Changes> GateGradients::changes(
    const std::vector<at::Tensor>& gradients, int64_t count) {
  Changes changes;
  const auto all = std::exchange(seen_, {});
  for (size_t i = 0; i < all.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const auto& [number, x] = all[i];
    const Gate& gate = gates_[number];
    if (count > 1 && (gate.dim == 0 || x.dim() <= gate.dim || x.size(0) != count)) return {};
    at::Tensor change = x.detach().to(at::kDouble) * gradients[i];
    if (count == 1) change = change.unsqueeze(0);
    const int64_t dim = gate.dim + (count == 1 ? 1 : 0);
    const at::Tensor sums = change.movedim(dim, 1).reshape({count, change.size(dim), -1}).sum(2);
    const at::Tensor part = by_channel(sums, gate.channels, squares_[gate.group].numel());
    const auto [place, is_new] = changes.emplace(gate.group, part);
    if (!is_new) place->second = place->second + part;
  }
  return changes;
}

void GateGradients::add(const Changes& changes, int64_t count) {
  for (const auto& [group, change] : changes) {
    squares_[group] += change.square().sum(0);
    reached_[group] = true;
  }
  samples_ += count;
}

void GateGradients::finish(Statistics& statistics) const {
  auto& groups = statistics.channels[Measure::kFisher];
  groups.assign(squares_.size(), {});
  for (const GroupId g : squares_.ids()) {
    if (reached_[g]) groups[g] = to_vector(squares_[g] / static_cast<double>(samples_));
  }
}

int64_t GateGradients::bytes() const {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : squares_) bytes += static_cast<int64_t>(tensor.nbytes());
  for (const Gate& gate : gates_) bytes += static_cast<int64_t>(gate.channels.nbytes());
  for (const auto& [gate, x] : seen_) bytes += static_cast<int64_t>(x.nbytes());
  return bytes;
}

}  // namespace parsimony::training
