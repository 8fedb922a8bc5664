#include "parsimony/masks/coupling.h"

#include <algorithm>
#include <unordered_map>

#include "parsimony/masks/axes_impl.h"
#include "parsimony/masks/effects_impl.h"
#include "parsimony/masks/lines_impl.h"
#include "parsimony/masks/union_find.h"

namespace parsimony {
namespace {

std::string_view name_of(Granularity granularity) {
  switch (granularity) {
    case Granularity::kHead:
      return "head";
    case Granularity::kHeadDim:
      return "head_dim";
    case Granularity::kGroup:
      return "group";
    case Granularity::kChannel:
      break;
  }
  return "channel";
}

/// Index types are data about data, never weights.
bool is_prunable(const Graph& graph, const Value& value) {
  if (value.weight == kNone) return false;
  const DType type = graph.weight(value.weight).dtype;
  return is_floating(type) || type == DType::kInt8 || type == DType::kUInt8;
}

/// Unites indices to classes and classes to groups.
class Grouper {
 public:
  Grouper(const Graph& graph, const Lines& lines, const Axes& axes, const Effects& effects,
          const CouplingOptions& options)
      : graph_(graph), lines_(lines), axes_(axes), effects_(effects), options_(options) {}

  Coupling run() {
    number_elements();
    unite_products();
    unite_maps();
    mark_pins();
    mixes_ = befallen(effects_.mixing);
    unweighted_ = befallen(effects_.unweighted);
    attach_weights();
    find_classes();
    make_groups();
    find_nonzero();
    fill_members();
    note_obstacles();
    result_.value_lines = lines_.value_lines();
    result_.zero = effects_.zero;
    collect_nodes();
    return std::move(result_);
  }

 private:
  struct Class {
    uint64_t signature = 0;  // of the lines with weights that it touches
    int last_line = kNone;
    ChannelId channel;
  };

  int32_t element(int line, int64_t i) const {
    return static_cast<int32_t>(result_.line_begin[static_cast<size_t>(line)] + i);
  }
  int64_t length(int line) const { return lines_.dead(line) ? 0 : lines_.size(line); }

  void number_elements() {
    int64_t total = 0;
    for (int line = 0; line < lines_.count(); ++line) {
      result_.line_begin.push_back(total);
      total += length(line);
    }
    result_.line_begin.push_back(total);
    line_elements_ = total;
    for (const Axis& axis : axes_.all()) {
      coordinate_begin_.push_back(total);
      total += axis.free ? axis.size : 0;
    }
    sets_ = UnionFind(static_cast<size_t>(total));
    pin_.assign(static_cast<size_t>(total), kNone);
  }

  /// Index i of a line belongs to coordinate (i / stride) % size of each free axis on it.
  void unite_products() {
    for (size_t a = 0; a < axes_.all().size(); ++a) {
      const Axis& axis = axes_.all()[a];
      if (!axis.free) continue;
      for (const Axis::Place& place : axis.places) {
        for (int64_t i = 0; i < length(place.line); ++i) {
          const int64_t coordinate = (i / place.stride) % axis.size;
          sets_.unite(element(place.line, i), static_cast<int32_t>(coordinate_begin_[a] + coordinate));
        }
      }
    }
  }

  void unite_maps() {
    for (int line = 0; line < lines_.count(); ++line) {
      if (lines_.dead(line)) continue;
      for (const LineRun& run : lines_.runs(line)) {
        // Each map is stored at both of its lines; one of them is enough.
        if (run.other == kNone || run.other < line || lines_.dead(run.other)) continue;
        for (int64_t i = 0; i < run.count; ++i) {
          sets_.unite(element(line, run.begin + i), element(run.other, run.other_begin + i));
        }
      }
    }
  }

  /// Pins a class; the first reason stays.
  void pin(int32_t e, int reason) {
    int& at = pin_[static_cast<size_t>(sets_.find(e))];
    if (at == kNone) at = reason;
  }

  void mark_pins() {
    extra_reasons_.reserve(16);
    for (int line = 0; line < lines_.count(); ++line) {
      const int64_t n = length(line);
      for (int64_t i = 0; i < n; ++i) {
        if (const int reason = lines_.pinned(line, i); reason != kNone) pin(element(line, i), reason);
      }
      if (n == 0) continue;
      for (const PlacedTerm& placed : lines_.terms(line)) {
        const auto is_free = [&](int l) { return axes_.free(lines_.letter_id(placed.node, l)); };
        const auto& letters = placed.term->letters;
        if (std::any_of(letters.begin(), letters.end(), is_free)) continue;
        const int reason = kRefused - static_cast<int>(extra_reasons_.size());
        extra_reasons_.push_back({placed.node, false, "competes with another axis of this dimension"});
        for (int64_t i = 0; i < n; ++i) pin(element(line, i), reason);
        break;
      }
    }
  }

  const Reason& reason(int id) const {
    return id <= kRefused ? extra_reasons_[static_cast<size_t>(kRefused - id)] : lines_.reason(id);
  }

  /// Per class root, the first node at which one of the events befalls it.
  std::vector<NodeId> befallen(const std::vector<Event>& events) {
    std::vector<NodeId> nodes(sets_.count(), kNone);
    const auto mark = [&](int32_t e, NodeId node) {
      NodeId& at = nodes[static_cast<size_t>(sets_.find(e))];
      if (at == kNone) at = node;
    };
    for (const Event& event : events) {
      const int axis = axes_.axis_of(event.letter);
      if (event.line != kNone) {
        for (int64_t i = 0; i < length(event.line); ++i) mark(element(event.line, i), event.node);
      } else if (axis != kNone) {
        for (int64_t c = 0; c < axes_.all()[static_cast<size_t>(axis)].size; ++c) {
          mark(static_cast<int32_t>(coordinate_begin_[static_cast<size_t>(axis)] + c), event.node);
        }
      }
    }
    return nodes;
  }

  /// Weights in the order in which nodes read them: it names the groups.
  void attach_weights() {
    weights_on_line_.resize(static_cast<size_t>(lines_.count()));
    std::vector<bool> seen(graph_.values.size(), false);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId v : graph_.nodes[n].inputs) {
        if (v == kNone || seen[static_cast<size_t>(v)] || !is_prunable(graph_, graph_.value(v))) continue;
        seen[static_cast<size_t>(v)] = true;
        const auto& dims = lines_.value_lines()[static_cast<size_t>(v)];
        for (size_t d = 0; d < dims.size(); ++d) {
          if (dims[d] == kNone) continue;
          reads_.push_back({v, static_cast<NodeId>(n), static_cast<int>(d)});
          if (lines_.dead(dims[d])) continue;
          auto& here = weights_on_line_[static_cast<size_t>(dims[d])];
          if (here.empty()) line_order_.push_back(dims[d]);
          here.push_back(reads_.size() - 1);
        }
      }
    }
  }

  void find_classes() {
    classes_.assign(sets_.count(), {});
    for (const int line : line_order_) {
      for (int64_t i = 0; i < length(line); ++i) {
        const int32_t root = sets_.find(element(line, i));
        if (pin_[static_cast<size_t>(root)] != kNone) continue;
        Class& c = classes_[static_cast<size_t>(root)];
        if (c.last_line == line) continue;
        c.last_line = line;
        c.signature = (c.signature ^ (static_cast<uint64_t>(line) + 1)) * 0x9E3779B97F4A7C15ULL;
        c.signature ^= c.signature >> 29;
      }
    }
  }

  void make_groups() {
    std::unordered_map<uint64_t, int> group_of;
    for (const int line : line_order_) {
      for (int64_t i = 0; i < length(line); ++i) {
        const int32_t root = sets_.find(element(line, i));
        Class& c = classes_[static_cast<size_t>(root)];
        if (c.last_line == kNone || c.channel.group != kNone) continue;
        const auto [it, fresh] = group_of.try_emplace(c.signature, static_cast<int>(result_.groups.size()));
        if (fresh) {
          Group group;
          group.id = "g" + std::to_string(result_.groups.size());
          group.granularity = name_of(options_.granularity);
          result_.groups.push_back(std::move(group));
        }
        Group& group = result_.groups[static_cast<size_t>(it->second)];
        c.channel = {it->second, group.size++};
        if (const NodeId node = mixes_[static_cast<size_t>(root)]; node != kNone && !group.mixes) {
          group.mixes = true;
          group.mixes_at = label_of(graph_, graph_.node(node));
        }
        group.weighted = group.weighted && unweighted_[static_cast<size_t>(root)] == kNone;
      }
    }
    result_.element_channel.assign(static_cast<size_t>(line_elements_), {});
    for (int64_t e = 0; e < line_elements_; ++e) {
      const int32_t root = sets_.find(static_cast<int32_t>(e));
      result_.element_channel[static_cast<size_t>(e)] = classes_[static_cast<size_t>(root)].channel;
    }
  }

  /// A channel that is not zero at some activation is not gone when its weights are.
  void find_nonzero() {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].weight != kNone) continue;
      const auto& dims = lines_.value_lines()[v];
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] == kNone || effects_.zero[v][d]) continue;
        for (const ChannelId& c : result_.channels(dims[d])) {
          if (c.group != kNone) result_.groups[static_cast<size_t>(c.group)].zero = false;
        }
      }
    }
  }

  void fill_members() {
    for (const int line : line_order_) {
      // Indices of each channel on this line, gathered per group by counting.
      const std::span<const ChannelId> channels = result_.channels(line);
      std::vector<int> here;
      for (const ChannelId& c : channels) {
        if (c.group != kNone && std::find(here.begin(), here.end(), c.group) == here.end()) {
          here.push_back(c.group);
        }
      }
      for (const int g : here) {
        Group& group = result_.groups[static_cast<size_t>(g)];
        Member member;
        member.size = lines_.size(line);
        member.offsets.assign(static_cast<size_t>(group.size) + 1, 0);
        for (const ChannelId& c : channels) {
          if (c.group == g) ++member.offsets[static_cast<size_t>(c.channel) + 1];
        }
        for (size_t c = 1; c < member.offsets.size(); ++c) member.offsets[c] += member.offsets[c - 1];
        member.indices.resize(static_cast<size_t>(member.offsets.back()));
        std::vector<int32_t> next(member.offsets.begin(), member.offsets.end() - 1);
        for (size_t i = 0; i < channels.size(); ++i) {
          if (channels[i].group != g) continue;
          member.indices[static_cast<size_t>(next[static_cast<size_t>(channels[i].channel)]++)] =
              static_cast<int64_t>(i);
        }
        for (const size_t r : weights_on_line_[static_cast<size_t>(line)]) add_members(group, member, reads_[r]);
      }
    }
  }

  struct Read {
    ValueId value;
    NodeId node;
    int dim;
  };

  void add_members(Group& group, Member member, const Read& read) {
    member.value = read.value;
    member.node = read.node;
    member.axis = read.dim;
    const uint8_t roles = effects_.roles[static_cast<size_t>(read.value)][static_cast<size_t>(read.dim)];
    for (const Role role : {Role::kOut, Role::kIn, Role::kWith}) {
      if ((roles & static_cast<uint8_t>(role)) == 0) continue;
      member.role = role;
      group.members.push_back(member);
    }
    if (roles == 0) group.members.push_back(member);
  }

  void note_obstacles() {
    for (const Read& read : reads_) {
      const int line = lines_.of(read.value, read.dim);
      Obstacle obstacle{read.value, read.dim, 0, kNone, false, {}};
      const Reason* why = nullptr;
      if (lines_.dead(line)) {
        obstacle.pinned = lines_.size(line);
        why = &lines_.why_dead(line);
      } else {
        for (int64_t i = 0; i < lines_.size(line); ++i) {
          const int pin = pin_[static_cast<size_t>(sets_.find(element(line, i)))];
          if (pin == kNone) continue;
          ++obstacle.pinned;
          why = &reason(pin);
        }
      }
      if (why == nullptr) continue;
      obstacle.node = why->node;
      obstacle.structural = why->structural;
      obstacle.reason = why->text;
      result_.obstacles.push_back(std::move(obstacle));
    }
    note_unread_weights();
  }

  /// Weights that only a subgraph reads, or nobody.
  void note_unread_weights() {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      if (!is_prunable(graph_, value) || !value.uses.empty()) continue;
      const Shape& dims = graph_.weight(value.weight).dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] <= 1) continue;
        const std::string reason = value.captured ? "is read inside a subgraph (If, Loop, Scan), which is not followed"
                                                  : "is read by no node";
        result_.obstacles.push_back({static_cast<ValueId>(v), static_cast<int>(d), dims[d], kNone, false, reason});
      }
    }
  }

  void collect_nodes() {
    result_.line_nodes.resize(static_cast<size_t>(lines_.count()));
    for (int line = 0; line < lines_.count(); ++line) {
      if (lines_.dead(line)) continue;
      auto& nodes = result_.line_nodes[static_cast<size_t>(line)];
      for (const PlacedTerm& placed : lines_.terms(line)) nodes.push_back(placed.node);
      std::sort(nodes.begin(), nodes.end());
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    }
  }

  static constexpr int kRefused = -2;

  const Graph& graph_;
  const Lines& lines_;
  const Axes& axes_;
  const Effects& effects_;
  const CouplingOptions& options_;
  Coupling result_;
  UnionFind sets_;
  int64_t line_elements_ = 0;
  std::vector<int64_t> coordinate_begin_;
  std::vector<int> pin_;         // per class root: reason
  std::vector<Reason> extra_reasons_;
  std::vector<NodeId> mixes_;       // per class root
  std::vector<NodeId> unweighted_;  // per class root
  std::vector<Read> reads_;
  std::vector<std::vector<size_t>> weights_on_line_;
  std::vector<int> line_order_;  // lines with weights, in order of first use
  std::vector<Class> classes_;
};

}  // namespace

std::string_view name_of(Role role) {
  switch (role) {
    case Role::kOut:
      return "out";
    case Role::kIn:
      return "in";
    case Role::kWith:
      break;
  }
  return "with";
}

int Coupling::line_of(ValueId value, int dim) const {
  const auto& dims = value_lines[static_cast<size_t>(value)];
  return static_cast<size_t>(dim) < dims.size() ? dims[static_cast<size_t>(dim)] : kNone;
}

std::vector<NodeId> Coupling::ties(int group) const {
  std::vector<NodeId> nodes;
  for (int line = 0; line < lines(); ++line) {
    const auto all = channels(line);
    const bool here = std::any_of(all.begin(), all.end(), [&](const ChannelId& c) { return c.group == group; });
    if (!here) continue;
    const auto& named = line_nodes[static_cast<size_t>(line)];
    nodes.insert(nodes.end(), named.begin(), named.end());
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

Coupling couple(const Graph& graph, const Facts& facts, const CouplingOptions& options) {
  const Lines lines(graph, facts, options.keep_whole);
  const Axes axes(graph, lines, options);
  const Effects effects = trace_effects(graph, facts, lines, axes);
  return Grouper(graph, lines, axes, effects, options).run();
}

}  // namespace parsimony
