#include "tests/agreement/answer.h"

#include "parsimony/torch_io/tensor.h"

namespace parsimony::test {
namespace {

std::string line_of(const Graph& graph, const Group& group, const std::set<std::string>& names) {
  std::set<std::string> members;
  for (const Member& member : group.members) {
    const WeightId weight = graph.value(member.value).weight;
    if (weight == kNone || !names.contains(graph.weight(weight).name)) continue;
    members.insert(graph.weight(weight).name + '[' + std::to_string(member.axis) + "] " +
                   std::string(name_of(member.role)));
  }
  std::string line = std::to_string(group.size) + " channels:";
  for (const std::string& member : members) line += ' ' + member + ',';
  return line + (group.mixes ? " mixed\n" : "\n");
}

}  // namespace

int64_t count_weights(const Graph& graph, const std::set<std::string>& names) {
  const IdVector<WeightId, bool> counts = parameters(graph);
  int64_t count = 0;
  for (const WeightId w : graph.weights.ids()) {
    const Weight& weight = graph.weights[w];
    if (counts[w] && names.contains(weight.name)) count += weight.count();
  }
  return count;
}

Tensors weights_of(const Graph& graph) {
  Tensors weights;
  for (const Weight& weight : graph.weights) {
    weights.emplace(weight.name, torch_io::to_tensor(weight));
  }
  return weights;
}

Answer answer_of(const Graph& graph, const Pruning& pruning, const std::set<std::string>& names) {
  std::multiset<std::string> lines;
  for (const Group& group : pruning.analysis.coupling.groups) {
    lines.insert(line_of(graph, group, names));
  }
  Answer answer;
  for (const std::string& line : lines) answer.groups += line;
  answer.dense = pruning.dense;
  answer.small = pruning.small;
  answer.dense_weights = count_weights(graph, names);
  return answer;
}

}  // namespace parsimony::test
