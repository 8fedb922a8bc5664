// Matrices of codes of a few bits.
#include <string>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"
#include "parsimony/graph/operators/match.h"
#include "parsimony/graph/operators/node_view.h"

namespace parsimony::operators {

/// The length of the rows is an attribute, and the last block may be short.
void patch_matmul_of_bits(PatchView& view) {
  const Shape* a = view.after.in_shape(0);
  if (a == nullptr || a->empty()) return;
  view.set_attribute("K", {view.before.attr("K", a->back())}, {a->back()});
}

namespace {

/// The labels of an axis along which codes lie in bytes, and in blocks that have a scale each.
struct CodedAxis {
  std::string whole;   ///< one by one
  std::string bytes;   ///< as many as share a byte together
  std::string blocks;  ///< as many as share a scale together
  std::string points;  ///< as many as have their zero points in one byte together
  std::string inside;  ///< the labels of what leaves together
};

CodedAxis coded_axis(const std::string& name, bool blocked, bool has_points) {
  if (!blocked) return {name + ' ' + name + "k", name, name, name, ' ' + name + 'k'};
  const std::string points = has_points ? ' ' + name + 'z' : "";
  const std::string inside = points + ' ' + name + 'b';
  return {name + inside, name + points + ' ' + name + 'r', name + points, name,
          inside + ' ' + name + 'r'};
}

std::string product_of(const std::string& labels) { return "(" + labels + ")"; }

/// The parameters of the weights' layout.
struct CodeLayout {
  int64_t bits;
  int64_t fusion;  ///< 1: gates beside what they gate, 2: before it, 0: in another matrix or none
  bool blocked;
};

CodeLayout code_layout_of(const NodeView& view) {
  const bool gated = view.attr("activation_type", "relu") == "swiglu";
  return {view.attr("expert_weight_bits", 4), gated ? view.attr("swiglu_fusion", 0) : 0,
          view.attr("block_size", 0) > 0};
}

/// "(i 2)": inner channels, and their gates if they are in the same matrix.
std::string with_gates(const std::string& inner, int64_t fusion) {
  return product_of(fusion == 1 ? inner + " 2" : fusion == 2 ? "2 " + inner : inner);
}

/// The zero points of the first matrices where each column has one: several columns share a byte.
std::string column_points(const CodeLayout& layout, const CodedAxis& inner) {
  if (layout.bits == 8) return with_gates(inner.whole, layout.fusion);
  if (layout.fusion == 1) return product_of(layout.bits == 4 ? inner.whole : inner.bytes + " 2");
  return with_gates(inner.bytes, layout.fusion);
}

/// @source onnxruntime, ContribOperators.md: QMoE
std::string experts_text_of(const NodeView& view) {
  const CodeLayout layout = code_layout_of(view);
  const bool blocked = layout.blocked;
  const CodedAxis hidden = coded_axis("h", blocked, view.has_input(11) || view.has_input(13));
  const CodedAxis inner = coded_axis("i", blocked, view.has_input(12));
  const std::string first = with_gates(inner.whole, layout.fusion);
  const std::string h = product_of(hidden.whole);
  const std::string i = product_of(inner.whole);
  const auto layer = [&](const std::string& number, const std::string& rows,
                         const CodedAxis& columns) {
    const std::string scales = blocked ? rows + ' ' + product_of(columns.blocks) : rows;
    return " w" + number + "[e " + rows + ' ' + product_of(columns.bytes) + "] s" + number + "[e " +
           scales + "] b" + number + "[e " + rows + "]?";
  };
  std::string text = "x[..t " + h + "] r[q e]" + layer("1", first, hidden) + layer("2", h, inner);
  if (view.has_input(8)) {
    text += layer("3", i, hidden);
  } else {
    text += " w3[]? s3[]? b3[]?";
  }
  const auto points = [&](const std::string& number, const std::string& rows,
                          const std::string& shared, const CodedAxis& columns) {
    const std::string each = blocked ? rows + ' ' + product_of(columns.points) : shared;
    return " z" + number + "[e " + each + "]?";
  };
  text += points("1", first, column_points(layout, inner), hidden);
  text += points("2", h, product_of(hidden.bytes), inner) +
          points("3", i, product_of(inner.bytes), hidden);
  text += " weights[q e]? -> y[..t " + h + "] ; mixes e ; least e k ; role expert e ; pin" +
          hidden.inside + inner.inside;
  if (blocked) text += " ; hb = attr block_size 0 ; ib = attr block_size 0";
  text += " ; k = attr k 1 ; macs";
  const std::string product = " x " + inner.whole + " k";
  text += product + " +" + product;
  if (layout.fusion > 0 || view.has_input(8)) text += " +" + product;
  return text;
}

/// Why the rows and columns of the weights are not known; empty if they are.
std::string_view unknown_layout_of(const NodeView& view) {
  const CodeLayout layout = code_layout_of(view);
  if (view.attr("quant_type", "int") != "int") return "codes that are not integers";
  if (view.attr("weights_prepacked", -1) != 0) {
    return "weights in the layout of one device: weights_prepacked is not 0";
  }
  const bool known = layout.bits == 2 || layout.bits == 4 || layout.bits == 8;
  return known ? "" : "codes that lie across bytes";
}

/// A row of codes is as long as its scales say. @throws ModelError
void check_blocks(const NodeView& view, int weights, int scales) {
  const CodeLayout layout = code_layout_of(view);
  const Shape* w = view.in_shape(weights);
  const Shape* s = view.in_shape(scales);
  if (!layout.blocked || w == nullptr || s == nullptr || w->empty() || s->empty()) return;
  const int64_t expected = element_count({s->back(), view.attr("block_size", 0)});
  const int64_t found = element_count({w->back(), 8 / layout.bits});
  if (expected == found) return;
  throw errors::shape_mismatch(view.label(), "a row of operand " + std::to_string(weights),
                               std::to_string(expected), std::to_string(found));
}

}  // namespace

notation::Line line_of_coded_experts(const NodeView& view) {
  return unknown_layout_of(view).empty() ? notation::parse(experts_text_of(view))
                                         : notation::Line();
}

namespace {

/// Has a scale for each block of an axis, the last of which is shorter than the others?
bool has_short_block(const NodeView& view) {
  const int64_t block = view.attr("block_size", 0);
  const Shape* x = view.in_shape(0);
  const Shape* scales = view.in_shape(1);
  if (block <= 0 || x == nullptr || scales == nullptr || x->size() != scales->size()) return false;
  const int64_t asked = view.attr("axis", 1);
  const auto rank = std::ssize(*x);
  if (asked < -rank || asked >= rank) return false;
  const int64_t axis = asked < 0 ? asked + rank : asked;
  const int64_t size = (*x)[axis];
  Shape expected = *x;
  expected[axis] = size / block + 1;
  return size % block != 0 && *scales == expected;
}

}  // namespace

Shapes infer_blocks(const NodeView& view) {
  if (has_short_block(view)) return {*view.in_shape(0)};
  return infer_line(*compiled(schema_of(view.node())), view);
}

Factors factor_blocks(const NodeView& view) {
  if (!has_short_block(view)) return factor_line(*compiled(schema_of(view.node())), view);
  const Shape& shape = known_shape(view, 0);
  const int blocks = normal_axis(view, view.attr("axis", 1), shape.size());
  FactorBuilder builder(view);
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    const int label = builder.label(shape[d]);
    for (const ValueId value : {view.input(0), view.input(1), view.input(2), view.output(0)}) {
      if (value == kNone) continue;
      if (d == blocks) {
        builder.pin(value, d, "in blocks of which the last is shorter");
      } else {
        builder.term(value, d, {{label}});
      }
    }
  }
  Factors factors = builder.take();
  const notation::Operand& scales =
      compiled(schema_of(view.node()))->alternatives.front().inputs[1];
  if (scales.divisor) factors.divisors.push_back(view.input(1));
  return factors;
}

/// Infers the shape of the result, which is that of the tokens, if the weights fit them.
Shapes infer_coded_experts(const NodeView& view) {
  if (unknown_layout_of(view).empty()) {
    infer_line(line_of_coded_experts(view), view);
    for (const int layer : {2, 5, 8}) check_blocks(view, layer, layer + 1);
  }
  return infer_same(view);
}

Factors factor_coded_experts(const NodeView& view) {
  if (const std::string_view why = unknown_layout_of(view); !why.empty()) {
    throw UnsupportedError(why);
  }
  return factor_line(line_of_coded_experts(view), view);
}

}  // namespace parsimony::operators
