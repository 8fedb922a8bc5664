#include "parsimony/pruners/latency/pieces.h"

#include <algorithm>
#include <set>
#include <sstream>

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

  std::vector<Piece> run() {
    piece_of_.assign(graph_.nodes.size(), kNone);
    constant_ = made_of_weights(graph_, facts_.computed);
    for (const NodeId n : graph_.nodes.ids()) place(n);
    for (Piece& piece : pieces_) {
      if (piece.lines.size() == 2 && share_a_group(piece.lines[0], piece.lines[1])) {
        const auto size = [&](size_t i) { return coupling_.channels(piece.lines[i]).size(); };
        piece.lines = {size(1) > size(0) ? piece.lines[1] : piece.lines[0]};
      }
      describe(piece);
    }
    return std::move(pieces_);
  }

 private:
  bool is_constant(ValueId v) const { return v == kNone || constant_[v]; }

  void place(NodeId id) {
    const Node& node = graph_.node(id);
    const auto constant = [&](ValueId v) { return is_constant(v); };
    if (node.has_subgraph || node.body != kNone) return;  // who knows how often it runs
    if (node.inputs.empty() || std::all_of(node.outputs.begin(), node.outputs.end(), constant)) {
      return;
    }
    const std::vector<LineId> lines = lines_of(node);
    const int host = host_of(id);
    if (host != kNone) {
      Piece& piece = pieces_[host];
      std::vector<LineId> both = united(piece.lines, lines);
      if (both.size() <= kMostLines) {
        piece.lines = std::move(both);
        piece.nodes.push_back(id);
        piece_of_[id] = host;
        return;
      }
    }
    piece_of_[id] = static_cast<int>(pieces_.size());
    pieces_.push_back({{id}, longest(lines), {}, {}});
  }

  /// The piece that `id` may join: that of the operand computed last.
  int host_of(NodeId id) const {
    if (layers_.contains(id)) return kNone;
    NodeId last;
    for (ValueId v : graph_.node(id).inputs) {
      if (!is_constant(v)) last = std::max(last, graph_.value(v).producer);
    }
    return last == kNone ? kNone : piece_of_[last];
  }

  std::vector<LineId> lines_of(const Node& node) const {
    std::vector<LineId> lines;
    const auto add = [&](ValueId v) {
      if (v == kNone || facts_.computed[v]) return;
      const auto& shape = facts_.shapes[v];
      for (int d = 0; shape && d < std::ssize(*shape); ++d) {
        const LineId line = coupling_.line_of(v, d);
        if (line != kNone && !coupling_.channels(line).empty()) lines.push_back(line);
      }
    };
    for (ValueId v : node.inputs) add(v);
    for (ValueId v : node.outputs) add(v);
    return united(lines, {});
  }

  static std::vector<LineId> united(std::vector<LineId> a, const std::vector<LineId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    std::sort(a.begin(), a.end());
    a.erase(std::unique(a.begin(), a.end()), a.end());
    return a;
  }

  bool share_a_group(LineId a, LineId b) const {
    std::set<int> groups;
    for (const ChannelId& channel : coupling_.channels(a)) groups.insert(channel.group);
    groups.erase(kNone);
    const auto of_b = coupling_.channels(b);
    return std::any_of(of_b.begin(), of_b.end(),
                       [&](const ChannelId& channel) { return groups.contains(channel.group); });
  }

  std::vector<LineId> longest(std::vector<LineId> lines) const {
    std::stable_sort(lines.begin(), lines.end(), [&](LineId a, LineId b) {
      return coupling_.channels(a).size() > coupling_.channels(b).size();
    });
    if (lines.size() > kMostLines) lines.resize(kMostLines);
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  /// "1x16@0x32x32": sizes, and which of the piece's axes they lie along.
  void write_value(std::ostream& out, ValueId v, const Piece& piece) const {
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
      const LineId line = coupling_.line_of(v, static_cast<int>(d));
      const auto at = std::find(piece.lines.begin(), piece.lines.end(), line);
      if (at != piece.lines.end()) out << '@' << at - piece.lines.begin();
    }
    out << ' ';
  }

  void describe(Piece& piece) const {
    std::ostringstream key;
    std::string what;
    for (NodeId id : piece.nodes) {
      const Node& node = graph_.node(id);
      key << node.domain << '.' << node.op << ' ' << node.opset << ' ';
      for (const auto& [name, value] : node.attributes) {
        key << name << '=';
        std::visit([&](const auto& held) { write(key, held); }, value);
      }
      for (ValueId v : node.inputs) {
        write_value(key, v, piece);
        // Which of the piece's own results is read.
        if (v == kNone || graph_.value(v).producer == kNone) continue;
        const auto from =
            std::find(piece.nodes.begin(), piece.nodes.end(), graph_.value(v).producer);
        if (from != piece.nodes.end()) key << '#' << from - piece.nodes.begin() << ' ';
      }
      key << "-> ";
      for (ValueId v : node.outputs) write_value(key, v, piece);
      key << "; ";
      what += (what.empty() ? "" : ", ") + node.op + matrix_of(id);
    }
    piece.key = key.str();
    piece.what = what;
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
  IdVector<NodeId, int> piece_of_;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<Piece> pieces_of(const Graph& graph, const Facts& facts, const Coupling& coupling) {
  return Cutter(graph, facts, coupling).run();
}

}  // namespace parsimony
