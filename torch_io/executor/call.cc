#include <algorithm>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/errors.h"
#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/weights_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {

const std::string& label(const Node& node) { return node.name.empty() ? node.op : node.name; }

std::string described(const Node& node) {
  const std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
  return "node \"" + label(node) + "\" (" + op + ", version " + std::to_string(node.opset) + ")";
}

UnsupportedError cannot_run(const Node& node, std::string_view why) {
  return UnsupportedError(described(node), " cannot be run by libtorch: ", why);
}

const at::Tensor& Call::at_or_none(const Tensors& tensors, size_t i) {
  static const at::Tensor none;
  return i < tensors.size() ? tensors[i] : none;
}

const at::Tensor& Call::presence(size_t i) const {
  if (const StoredWeight* held = weight(i)) {
    present.resize(std::max(present.size(), i + 1));
    if (!present[i].defined()) present[i] = held->present();
  }
  return at_or_none(present, i);
}

const Attribute* Call::find(std::string_view attribute) const {
  return find_attribute(node, attribute);
}

at::Tensor Call::presence_numbers(size_t i) const {
  return presence(i).defined() ? presence(i).to(at::kFloat)
                               : at::ones(in(i).sizes(), in(i).options().dtype(at::kFloat));
}

at::Tensor Call::filled(size_t i, double value) const {
  if (!presence(i).defined()) return in(i);
  return in(i).masked_fill(presence(i).logical_not(), value);
}

at::ScalarType Call::stored_type(at::ScalarType type) const {
  return widens && (type == at::kHalf || type == at::kBFloat16) ? at::kFloat : type;
}

int64_t Call::integer(std::string_view attribute, int64_t fallback) const {
  const Attribute* found = find(attribute);
  if (found == nullptr) return fallback;
  if (const auto* one = std::get_if<int64_t>(found)) return *one;
  if (const auto* list = std::get_if<Ints>(found); list != nullptr && list->size() == 1) {
    return list->front();
  }
  throw errors::bad_attribute(label(node), attribute, "expected an integer");
}

double Call::real(std::string_view attribute, double fallback) const {
  const Attribute* found = find(attribute);
  if (found == nullptr) return fallback;
  if (const auto* one = std::get_if<double>(found)) return *one;
  if (const auto* one = std::get_if<int64_t>(found)) return static_cast<double>(*one);
  throw errors::bad_attribute(label(node), attribute, "expected a number");
}

std::string Call::text(std::string_view attribute, std::string fallback) const {
  const Attribute* found = find(attribute);
  if (found == nullptr) return fallback;
  if (const auto* one = std::get_if<std::string>(found)) return *one;
  throw errors::bad_attribute(label(node), attribute, "expected a string");
}

Ints Call::integers(std::string_view attribute, Ints fallback) const {
  const Attribute* found = find(attribute);
  if (found == nullptr) return fallback;
  if (const auto* list = std::get_if<Ints>(found)) return *list;
  if (const auto* one = std::get_if<int64_t>(found)) return {*one};
  throw errors::bad_attribute(label(node), attribute, "expected integers");
}

std::vector<double> Call::reals(std::string_view attribute) const {
  const Attribute* found = find(attribute);
  if (found == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<double>>(found)) return *list;
  if (const auto* list = std::get_if<Ints>(found)) return {list->begin(), list->end()};
  throw errors::bad_attribute(label(node), attribute, "expected numbers");
}

std::vector<std::string> Call::texts(std::string_view attribute) const {
  const Attribute* found = find(attribute);
  if (found == nullptr) return {};
  if (const auto* list = std::get_if<std::vector<std::string>>(found)) return *list;
  throw errors::bad_attribute(label(node), attribute, "expected strings");
}

Ints Call::ints_in(size_t i) const {
  const at::Tensor host = in(i).detach().to(at::kCPU, at::kLong).contiguous();
  const auto* first = host.data_ptr<int64_t>();
  return {first, first + host.numel()};
}

std::vector<double> Call::numbers_in(size_t i) const {
  const at::Tensor host = in(i).detach().to(at::kCPU, at::kDouble).contiguous();
  const auto* first = host.data_ptr<double>();
  return {first, first + host.numel()};
}

double Call::number_in(size_t i, double fallback) const {
  return has_in(i) && in(i).numel() > 0 ? numbers_in(i)[0] : fallback;
}

Ints Call::ints(size_t input, std::string_view attribute) const {
  return has_in(input) ? ints_in(input) : integers(attribute);
}

DType Call::type_in(size_t i) const {
  const DType known = i < types.size() ? types[i] : DType::kUnknown;
  if (known != DType::kUnknown || !has_in(i)) return known;
  return torch_io::dtype_of(in(i).scalar_type());
}

void Call::unsupported(std::string_view what) const { throw cannot_run(node, what); }

at::Tensor of_sizes(const Ints& dims) { return at::zeros({1}).expand(dims); }

at::Tensor both(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a.logical_and(b) : a;
}

bool is_half(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() &&
         (tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16);
}

int64_t wrapped(int64_t axis, int64_t rank) {
  TORCH_CHECK(axis >= -rank && axis < std::max<int64_t>(rank, 1), "axis ", axis, " of rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

Ints wrapped(Ints axes, int64_t rank) {
  for (int64_t& axis : axes) axis = wrapped(axis, rank);
  return axes;
}

at::Tensor along(const at::Tensor& vector, int64_t axis, int64_t rank) {
  Ints dims(rank, 1);
  dims[wrapped(axis, rank)] = vector.numel();
  return vector.reshape(dims);
}

at::ScalarType type_of_code(const Call& call, int64_t code) {
  const DType type = dtype_of_onnx(code);
  if (type == DType::kUnknown) call.unsupported("unknown element type " + std::to_string(code));
  return torch_io::scalar_type_of(type);
}

at::ScalarType type_of_name(const Call& call, std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::kString); ++i) {
    const auto type = static_cast<DType>(i);
    if (name_of(type) == name) return torch_io::scalar_type_of(type);
  }
  call.unsupported("unknown element type " + std::string(name));
}

}  // namespace parsimony::executor
