// Attention as one operator: com.microsoft's and ONNX's. Their lines name "head" and "dim"; what is
// here is what a line cannot say: the growing cache, the scale that the size of a head implies, and
// the attributes that count heads.
#include <algorithm>
#include <cmath>
#include <set>

#include "parsimony/base/errors.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/families.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony::operators {
namespace {

const notation::Line& line_of(const NodeView& view) {
  return *compiled(*find_schema(view.node().domain, view.node().op));
}

/// The place of the queries, head by head: dimension `dim` of `value` is a product that ends in a
/// head's `size` elements.
struct Heads {
  ValueId value = kNone;
  int dim = 0;
  int64_t size = 0;
};

/// The attribute that counts heads of queries. Where keys have fewer, the operator's line counts
/// those of keys.
std::string_view heads_attribute(const NodeView& view) {
  const bool apart = view.node().domain.empty() || view.find("q_num_heads") != nullptr;
  return apart ? "q_num_heads" : "num_heads";
}

int64_t heads_asked(const NodeView& view) { return view.attr(heads_attribute(view), 0); }

bool is_grouped_in_one(const NodeView& view) {
  return view.node().op == "GroupQueryAttention" && view.input(1) == kNone;
}

/// Empty where the operator does not tell, or does not fit.
std::optional<Heads> heads_of(const NodeView& view) {
  const bool packed = view.node().op == "Attention" && !view.node().domain.empty();
  const ValueId value = view.input(packed ? 1 : 0);
  const Shape* shape = view.shape(value);
  if (shape == nullptr || shape->empty()) return std::nullopt;
  const auto last = static_cast<int>(shape->size()) - 1;
  const int64_t size = shape->back();
  if (!packed && shape->size() > 3) return Heads{value, last, size};
  const int64_t asked = heads_asked(view);
  const int64_t keys = is_grouped_in_one(view) ? view.attr("kv_num_heads", -1) : 0;
  if (asked <= 0 || asked > size || keys < 0 || keys > size) return std::nullopt;
  const int64_t heads = asked * (packed ? 3 : 1) + 2 * keys;
  if (size % heads != 0) return std::nullopt;
  return Heads{value, last, size / heads};
}

/// The operands and results through which a cache of keys and values comes in and leaves.
struct Cache {
  int past;    ///< the first operand
  int result;  ///< the first result
  int count;   ///< of either: keys and values apart, or in one
  int along;   ///< the dimension of keys
};

Cache cache_of(const NodeView& view) {
  const Node& node = view.node();
  if (node.op == "MultiHeadAttention") return {6, 1, 2, 2};
  if (node.op == "GroupQueryAttention") return {3, 1, 2, 2};
  return node.domain.empty() ? Cache{4, 1, 2, 2} : Cache{4, 1, 1, 3};
}

/// Keys that come to those of the cache, or all of them where it has room for more. Below 0: not
/// known.
int64_t cached_keys(const NodeView& view, int64_t past) {
  if (view.node().op == "GroupQueryAttention") {
    const HostTensor* total = view.constant(6);
    const bool known = total != nullptr && !total->floating() && total->count() == 1;
    return known ? std::max(past, total->ints.front()) : -1;
  }
  const bool packed = view.node().op == "Attention" && !view.node().domain.empty();
  const Shape* keys = view.in_shape(packed ? 0 : 1);
  if (keys == nullptr || keys->size() < 3) return -1;
  return past + (*keys)[keys->size() == 4 ? 2 : 1];
}

/// The shapes of what goes into the cache of the next call, where its line could not tell.
void infer_cache(const NodeView& view, Shapes& shapes) {
  const Cache cache = cache_of(view);
  for (int i = 0; i < cache.count && cache.result + i < view.outputs(); ++i) {
    std::optional<Shape>& shape = shapes[cache.result + i];
    const Shape* past = view.in_shape(cache.past + i);
    const auto along = static_cast<size_t>(cache.along);
    if (shape || past == nullptr || past->size() <= along) continue;
    const int64_t keys = cached_keys(view, (*past)[along]);
    if (keys < 0) continue;
    shape = *past;
    (*shape)[along] = keys;
  }
}

/// Heads of queries go, as many of every group: they come first in the matrix. Keys and values
/// stay, for the cache, an input of the network, has them.
Factors factor_grouped_in_one(const NodeView& view) {
  Factors factors = factor_line(line_of(view), view);
  const auto packed = heads_of(view);
  const Shape* y = view.out_shape(0);
  if (!packed || y == nullptr || y->back() != heads_asked(view) * packed->size) {
    throw UnsupportedError("the matrix is not made of heads");
  }
  const ValueId x = packed->value;
  const int dim = packed->dim;
  const int64_t queries = y->back();
  std::erase_if(factors.terms, [&](const Term& t) { return t.value == x && t.dim == dim; });
  for (Label& label : factors.labels) {
    if (label.name == "per") label.window = false;  // the map has it on both sides
  }
  factors.maps.push_back({x, dim, view.output(0), dim, {{0, 0, queries}}});
  factors.pins.push_back(
      {x, dim, queries, view.shape(x)->back(), "keys and values of grouped queries"});
  return factors;
}

/// Query, key and value of one size each, in one matrix.
bool equal_parts(const NodeView& view) {
  const std::vector<int64_t> sizes = view.attrs("qkv_hidden_sizes");
  return std::ranges::all_of(sizes, [&](int64_t s) { return s == sizes[0]; });
}

}  // namespace

Shapes infer_attention(const NodeView& view) {
  Shapes shapes(static_cast<size_t>(view.outputs()));
  const Shape* x = view.in_shape(0);
  if (view.find("qkv_hidden_sizes") != nullptr && !equal_parts(view)) {
    if (x == nullptr || x->size() != 3) return shapes;
    shapes[0] = Shape{(*x)[0], (*x)[1], view.attrs("qkv_hidden_sizes").back()};
  } else if (is_grouped_in_one(view)) {
    const int64_t heads = view.attr("num_heads", 0);
    const int64_t kv_heads = view.attr("kv_num_heads", 0);
    const int64_t width = x == nullptr || x->size() != 3 ? 0 : x->back();
    if (heads <= 0 || kv_heads <= 0 || heads > width || kv_heads > width) return shapes;
    const int64_t size = width / (heads + 2 * kv_heads);  // of a head
    shapes[0] = Shape{(*x)[0], (*x)[1], size * heads};
  } else {
    shapes = infer_line(line_of(view), view);
  }
  infer_cache(view, shapes);
  return shapes;
}

Factors factor_attention(const NodeView& view) {
  if (view.find("qkv_hidden_sizes") != nullptr && !equal_parts(view)) {
    return pin_operands(view, "query, key and value of different sizes in one matrix");
  }
  if (is_grouped_in_one(view)) return factor_grouped_in_one(view);
  return factor_line(line_of(view), view);
}

/// @source onnxruntime, ContribOperators.md: MultiHeadAttention, Attention, GroupQueryAttention;
/// ONNX operator Attention, opset 23: a scale that is not given is 1 / sqrt(size of a head)
void patch_attention(PatchView& view) {
  const auto heads = heads_of(view.before);
  const auto* kept = heads ? view.kept(heads->value, heads->dim) : nullptr;
  if (kept == nullptr) return;
  std::set<int64_t> dims;
  std::set<int64_t> which;
  const bool grouped_in_one = is_grouped_in_one(view.before);
  for (const int64_t i : *kept) {
    if (grouped_in_one && i >= heads_asked(view.before) * heads->size) break;
    dims.insert(i % heads->size);
    which.insert(i / heads->size);
  }
  // Elsewhere the heads are a label of the line, which changes the attribute.
  if (const int64_t asked = heads_asked(view.before);
      asked > 0 && view.before.find("kv_num_heads") != nullptr) {
    view.set_attribute(heads_attribute(view.before), {asked}, {std::ssize(which)});
  }
  if (const auto sizes = view.before.attrs("qkv_hidden_sizes"); !sizes.empty()) {
    const auto size = static_cast<int64_t>(kept->size()) / 3;
    view.set_attribute("qkv_hidden_sizes", sizes, {size, size, size});
  }
  const auto* given = attr_if<double>(view.before.node(), "scale");
  const bool implied = given == nullptr || *given == 0;
  if (implied && static_cast<int64_t>(dims.size()) != heads->size) {
    const auto size = [](auto n) { return static_cast<double>(n); };
    const auto frozen = static_cast<float>(1 / std::sqrt(size(heads->size)));
    view.set_number("scale", static_cast<float>(1 / std::sqrt(size(dims.size()))), frozen);
  }
}

/// Rotating a part of each head tells the two parts apart.
Factors factor_rotary(const NodeView& view) {
  const Shape* table = view.in_shape(view.node().domain.empty() ? 1 : 2);
  const int64_t rotated = view.attr("rotary_embedding_dim", 0);
  const Shape* x = view.in_shape(0);
  if (rotated > 0 && table != nullptr && x != nullptr) {
    const int64_t heads = view.attr("num_heads", 0);
    const int64_t size = x->size() == 4 ? x->back() : heads > 0 ? x->back() / heads : 0;
    if (size != rotated) return pin_operands(view, "a part of each head is rotated");
  }
  return factor_line(line_of(view), view);
}

Shapes infer_rotary(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  return x == nullptr ? Shapes(1) : Shapes{*x};
}

}  // namespace parsimony::operators
