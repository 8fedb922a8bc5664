#include "parsimony/pruners/latency/subgraphs.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/operands.h"
#include "parsimony/pruners/layers.h"

namespace parsimony {
namespace {

constexpr size_t kMostLines = 2;

template <typename T>
void write(std::ostream& out, const T& value) {
  out << value << ' ';
}

template <typename T>
void write(std::ostream& out, const std::vector<T>& values) {
  for (const T& value : values) out << value << ' ';
}

class Cutter {
 public:
  Cutter(const Graph& graph, const Facts& facts, const Coupling& coupling)
      : graph_(graph), facts_(facts), coupling_(coupling), layers_(graph) {}

  std::vector<Subgraph> run() {
    subgraph_of_.assign(graph_.nodes.size(), kNone);
    constant_ = made_of_weights(graph_, facts_.computed);
    for (const NodeId n : graph_.nodes.ids()) place(n);
    for (Subgraph& subgraph : subgraphs_) {
      if (subgraph.dim_classes.size() == 2 &&
          share_a_group(subgraph.dim_classes[0], subgraph.dim_classes[1])) {
        const auto size = [&](size_t i) {
          return coupling_.channels(subgraph.dim_classes[i]).size();
        };
        subgraph.dim_classes = {size(1) > size(0) ? subgraph.dim_classes[1]
                                                  : subgraph.dim_classes[0]};
      }
      describe(subgraph);
    }
    return std::move(subgraphs_);
  }

 private:
  bool is_constant(ValueId v) const { return v == kNone || constant_[v]; }

  void place(NodeId id) {
    const Node& node = graph_.node(id);
    const auto constant = [&](ValueId v) { return is_constant(v); };
    if (node.has_subgraph || node.body != kNone) return;  // it may run any number of times
    if (node.inputs.empty() || std::ranges::all_of(node.outputs, constant)) {
      return;
    }
    const std::vector<DimClassId> dim_classes = lines_of(node);
    const int host = host_of(id);
    if (host != kNone) {
      Subgraph& subgraph = subgraphs_[host];
      std::vector<DimClassId> both = united(subgraph.dim_classes, dim_classes);
      if (both.size() <= kMostLines) {
        subgraph.dim_classes = std::move(both);
        subgraph.nodes.push_back(id);
        subgraph_of_[id] = host;
        return;
      }
    }
    subgraph_of_[id] = static_cast<int>(subgraphs_.size());
    subgraphs_.push_back({{id}, longest(dim_classes), {}, {}});
  }

  /// The subgraph that `id` may join: that of the operand computed last.
  int host_of(NodeId id) const {
    if (layers_.contains(id)) return kNone;
    NodeId last;
    for (ValueId v : graph_.node(id).inputs) {
      if (!is_constant(v)) last = std::max(last, graph_.value(v).producer);
    }
    return last == kNone ? kNone : subgraph_of_[last];
  }

  std::vector<DimClassId> lines_of(const Node& node) const {
    std::vector<DimClassId> dim_classes;
    const auto add = [&](ValueId v) {
      if (v == kNone || facts_.computed[v]) return;
      const auto& shape = facts_.shapes[v];
      for (int d = 0; shape && d < std::ssize(*shape); ++d) {
        const DimClassId dim_class = coupling_.dim_class_of(v, d);
        if (dim_class != kNone && !coupling_.channels(dim_class).empty())
          dim_classes.push_back(dim_class);
      }
    };
    for (ValueId v : node.inputs) add(v);
    for (ValueId v : node.outputs) add(v);
    return united(dim_classes, {});
  }

  static std::vector<DimClassId> united(std::vector<DimClassId> a,
                                        const std::vector<DimClassId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    sort_unique(a);
    return a;
  }

  bool share_a_group(DimClassId a, DimClassId b) const {
    std::set<GroupId> groups;
    for (const ChannelId& channel : coupling_.channels(a)) groups.insert(channel.group);
    groups.erase(kNone);
    const auto of_b = coupling_.channels(b);
    return std::ranges::any_of(
        of_b, [&](const ChannelId& channel) { return groups.contains(channel.group); });
  }

  std::vector<DimClassId> longest(std::vector<DimClassId> dim_classes) const {
    std::ranges::stable_sort(dim_classes, [&](DimClassId a, DimClassId b) {
      return coupling_.channels(a).size() > coupling_.channels(b).size();
    });
    if (dim_classes.size() > kMostLines) dim_classes.resize(kMostLines);
    std::ranges::sort(dim_classes);
    return dim_classes;
  }

  /// "1x16@0x32x32": sizes, and which of the subgraph's axes they lie along.
  void write_value(std::ostream& out, ValueId v, const Subgraph& subgraph) const {
    if (v == kNone) {
      out << "- ";
      return;
    }
    const auto& shape = facts_.shapes[v];
    if (!shape) {
      out << "? ";
      return;
    }
    out << (graph_.value(v).weight != kNone ? "w" : "v");
    for (size_t d = 0; d < shape->size(); ++d) {
      out << (d == 0 ? "" : "x") << (*shape)[d];
      const DimClassId dim_class = coupling_.dim_class_of(v, static_cast<int>(d));
      const auto at = std::ranges::find(subgraph.dim_classes, dim_class);
      if (at != subgraph.dim_classes.end()) out << '@' << at - subgraph.dim_classes.begin();
    }
    out << ' ';
  }

  void describe(Subgraph& subgraph) const {
    std::ostringstream key;
    std::string what;
    for (NodeId id : subgraph.nodes) {
      const Node& node = graph_.node(id);
      key << node.domain << '.' << node.op << ' ' << node.opset << ' ';
      for (const auto& [name, value] : node.attributes) {
        key << name << '=';
        std::visit([&](const auto& held) { write(key, held); }, value);
      }
      for (ValueId v : node.inputs) {
        write_value(key, v, subgraph);
        // Which of the subgraph's own results is read.
        if (v == kNone || graph_.value(v).producer == kNone) continue;
        const auto from = std::ranges::find(subgraph.nodes, graph_.value(v).producer);
        if (from != subgraph.nodes.end()) key << '#' << from - subgraph.nodes.begin() << ' ';
      }
      key << "-> ";
      for (ValueId v : node.outputs) write_value(key, v, subgraph);
      key << "; ";
      what += (what.empty() ? "" : ", ") + node.op + matrix_of(id);
    }
    subgraph.key = key.str();
    subgraph.what = what;
  }

  std::string matrix_of(NodeId id) const {
    if (!layers_.contains(id)) return {};
    const std::vector<ValueId> weights = layers_.weights(id);
    if (weights.empty()) return {};
    std::string text;
    for (int64_t dim : graph_.weight(graph_.value(weights[0]).weight).dims) {
      text += (text.empty() ? " " : "x") + std::to_string(dim);
    }
    return text;
  }

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  Layers layers_;
  IdVector<ValueId, bool> constant_;
  IdVector<NodeId, int> subgraph_of_;
  std::vector<Subgraph> subgraphs_;
};

}  // namespace

std::vector<Subgraph> subgraphs_of(const Graph& graph, const Facts& facts,
                                   const Coupling& coupling) {
  return Cutter(graph, facts, coupling).run();
}

}  // namespace parsimony
