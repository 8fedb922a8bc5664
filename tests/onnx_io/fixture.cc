#include "tests/onnx_io/fixture.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace parsimony::onnx_io::test {
namespace {

/// Number `i` of `counting`, as the bits of the type. float16: whole numbers below 2048.
uint64_t bits_of(int32_t data_type, int64_t number) {
  uint64_t bits = 0;
  const auto real = static_cast<double>(number);
  const auto single = static_cast<float>(number);
  uint32_t word = 0;
  std::memcpy(&word, &single, sizeof(word));
  switch (data_type) {
    case onnx::TensorProto::FLOAT:
      return word;
    case onnx::TensorProto::BFLOAT16:
      return word >> 16;
    case onnx::TensorProto::FLOAT16:
      return (word >> 16 & 0x8000U) | ((word & 0x7fffffffU) - 0x38000000U) >> 13;
    case onnx::TensorProto::DOUBLE:
      std::memcpy(&bits, &real, sizeof(bits));
      return bits;
    default:
      return static_cast<uint64_t>(number);
  }
}

bool is_signed(int32_t data_type) {
  return data_type != onnx::TensorProto::UINT8 && data_type != onnx::TensorProto::UINT16 &&
         data_type != onnx::TensorProto::UINT32 && data_type != onnx::TensorProto::UINT64;
}

int width_of(int32_t data_type) {
  switch (data_type) {
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL:
      return 1;
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
      return 2;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64:
      return 8;
    default:
      return 4;
  }
}

/// Small signed types stand in int32_data as the number they are, float16 as its bits.
void add_typed(onnx::TensorProto& tensor, uint64_t bits, int64_t number) {
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      tensor.add_float_data(static_cast<float>(number));
      break;
    case onnx::TensorProto::DOUBLE:
      tensor.add_double_data(static_cast<double>(number));
      break;
    case onnx::TensorProto::INT64:
      tensor.add_int64_data(number);
      break;
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64:
      tensor.add_uint64_data(bits);
      break;
    default:
      tensor.add_int32_data(static_cast<int32_t>(bits));
  }
}

}  // namespace

void save(const onnx::ModelProto& model, const std::string& path) {
  write_bytes(path, model.SerializeAsString());
}

onnx::ModelProto load(const std::string& path) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes_of(path))) throw std::runtime_error("cannot parse " + path);
  return model;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

onnx::TensorProto& initializer(onnx::ModelProto& model, const std::string& name) {
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() == name) return tensor;
  }
  throw std::runtime_error("no initializer " + name);
}

const Weight& weight_of(const Graph& graph, const std::string& value) {
  const ValueId id = graph.find(value);
  if (id == kNone || graph.value(id).weight == kNone) throw std::runtime_error("no " + value);
  return graph.weight_of(id);
}

const Node& node_of(const Graph& graph, const std::string& output) {
  return graph.node(graph.value(graph.find(output)).producer);
}

onnx::TensorProto counting(const std::string& name, int32_t data_type, const Shape& dims,
                           bool raw) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(data_type);
  int64_t count = 1;
  for (const int64_t dim : dims) {
    tensor.add_dims(dim);
    count *= dim;
  }
  std::string data;
  for (int64_t i = 0; i < count; ++i) {
    const bool truth = data_type == onnx::TensorProto::BOOL;
    const int64_t number = truth ? i % 2 : is_signed(data_type) && i % 2 == 1 ? -i - 1 : i + 1;
    const uint64_t bits = bits_of(data_type, number);
    if (raw) {
      data.append(reinterpret_cast<const char*>(&bits), width_of(data_type));
    } else {
      add_typed(tensor, bits, number);
    }
  }
  if (raw) tensor.set_raw_data(data);
  return tensor;
}

void make_external(onnx::TensorProto& tensor, const std::string& file,
                   const std::string& location) {
  std::string bytes = bytes_of(file);
  const auto add = [&](const std::string& key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  add("offset", std::to_string(bytes.size()));
  add("length", std::to_string(tensor.raw_data().size()));
  write_bytes(file, bytes + tensor.raw_data());
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
}

}  // namespace parsimony::onnx_io::test
