#include "tests/support/fixture.h"

#include <onnx/defs/parser.h>

#include <Eigen/Core>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>

namespace parsimony::test {
namespace fs = std::filesystem;
namespace {

template <typename T>
void append(std::string& data, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  data.append(bytes, sizeof(T));
}

struct Type {
  const char* name;
  int32_t code;
  void (*append)(std::string&, double);
};

template <typename T>
void append_real(std::string& data, double value) {
  append(data, static_cast<T>(static_cast<float>(value)));
}

template <typename T>
void append_integer(std::string& data, double value) {
  append(data, static_cast<T>(value < 0 && std::is_unsigned_v<T> ? -100 * value : 100 * value));
}

/// Eight bits that are any code but those for what is not a number.
void append_float8(std::string& data, double value) {
  data.push_back(
      static_cast<char>(std::abs(static_cast<int>(100 * value)) | (value < 0 ? 0x80 : 0)));
}

/// Two in a byte, the first in the low bits: the numbers of a tensor are packed at its end.
void append_nibble(std::string& data, double value) {
  data.push_back(static_cast<char>(static_cast<int>(7.5 * value) & 15));
}

constexpr Type kTypes[] = {
    {"float", onnx::TensorProto::FLOAT, append_real<float>},
    {"double", onnx::TensorProto::DOUBLE, [](std::string& d, double v) { append(d, v); }},
    {"float16", onnx::TensorProto::FLOAT16, append_real<Eigen::half>},
    {"bfloat16", onnx::TensorProto::BFLOAT16, append_real<Eigen::bfloat16>},
    {"int8", onnx::TensorProto::INT8, append_integer<int8_t>},
    {"uint8", onnx::TensorProto::UINT8, append_integer<uint8_t>},
    {"int16", onnx::TensorProto::INT16, append_integer<int16_t>},
    {"uint16", onnx::TensorProto::UINT16, append_integer<uint16_t>},
    {"int32", onnx::TensorProto::INT32, append_integer<int32_t>},
    {"float8e4m3fn", 17, append_float8},  // by the numbers of onnx.proto, of which this has not all
    {"uint4", 21, append_nibble},
    {"int4", 22, append_nibble},
};

std::string joined(const std::string& nibbles) {
  std::string bytes((nibbles.size() + 1) / 2, '\0');
  for (size_t i = 0; i < nibbles.size(); ++i) {
    bytes[i / 2] = static_cast<char>(bytes[i / 2] | nibbles[i] << (i % 2 * 4));
  }
  return bytes;
}

const Type& type_of(const std::string& name) {
  for (const Type& type : kTypes) {
    if (name == type.name) return type;
  }
  throw std::runtime_error("no type " + name);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

void list_as_input(onnx::ModelProto& model, const onnx::TensorProto& tensor) {
  onnx::ValueInfoProto& info = *model.mutable_graph()->add_input();
  info.set_name(tensor.name());
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(tensor.data_type());
  for (const int64_t dim : tensor.dims()) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

void read_weight(const std::vector<std::string>& words, Fixture& fixture) {
  if (words.size() < 2) throw std::runtime_error("expected a name and dims");
  std::string type = "float";
  std::string kind;
  bool input = false;
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "input") {
      input = true;
    } else if (words[i] == "ones" || words[i] == "zeros" || words[i] == "positive") {
      kind = words[i];
    } else {
      type = words[i];
    }
  }
  add_weight(fixture.model, words[0], words[1] == "scalar" ? "" : words[1], type, kind);
  const auto& initializers = fixture.model.graph().initializer();
  if (input) list_as_input(fixture.model, initializers[initializers.size() - 1]);
}

/// What stands behind "# KEY" or "# KEY:".
void read_comment(const std::string& key, const std::string& text, Fixture& fixture) {
  if (key == "weight") {
    read_weight(words_of(text), fixture);
  } else if (key == "input:") {
    fixture.inputs.push_back(text);
  } else if (key == "granularity:") {
    fixture.granularity = text;
  } else if (key == "onnxruntime:") {
    fixture.onnxruntime = false;
  } else if (key == "libonnx:") {
    fixture.libonnx = false;
  }
}

fs::path path_of(const std::string& name) {
  return fs::path(PARSIMONY_SOURCE_DIR "/tests/operators") / (name + ".txt");
}

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Where the model ends.
size_t end_of_model(const std::string& text) {
  const size_t end = text.find("\n---\n");
  return end == std::string::npos ? text.size() : end + 1;
}

std::vector<Fixture> read_all() {
  const char* only = std::getenv("PARSIMONY_FIXTURE");
  std::vector<Fixture> fixtures;
  if (only != nullptr && *only != '\0') return {read_fixture(path_of(only))};
  for (const auto& entry : fs::directory_iterator(path_of("").parent_path())) {
    if (entry.path().extension() == ".txt") fixtures.push_back(read_fixture(entry.path()));
  }
  std::sort(fixtures.begin(), fixtures.end(),
            [](const Fixture& a, const Fixture& b) { return a.name < b.name; });
  return fixtures;
}

}  // namespace

onnx::ModelProto model_of(const std::string& text) {
  const bool has_header = text.starts_with('<') || text.find("\n<ir_version") != std::string::npos;
  const std::string header = has_header ? "" : "<ir_version: 8, opset_import: [\"\" : 13]>\n";
  const std::string whole = header + text;
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, whole.c_str());
  if (!status.IsOK()) throw std::runtime_error(status.ErrorMessage());
  return model;
}

void add_weight(onnx::ModelProto& model, const std::string& name, const std::string& dims,
                const std::string& type_name, const std::string& kind) {
  const Type& type = type_of(type_name);
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type.code);
  int64_t count = 1;
  std::istringstream in(dims);
  for (std::string dim; std::getline(in, dim, 'x');) {
    tensor.add_dims(std::stoll(dim));
    count *= std::stoll(dim);
  }
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937 random(seed);
  std::string data;
  for (int64_t i = 0; i < count; ++i) {
    double value = (static_cast<double>(random() % 20001) - 10000) / 10000;
    if (kind == "positive") value = std::abs(value) + 0.5;
    if (kind == "ones") value = 1;
    if (kind == "zeros") value = 0;
    type.append(data, value);
  }
  if (type.append == append_nibble) data = joined(data);
  tensor.set_raw_data(data);
}

Fixture read_fixture(const fs::path& path) {
  const std::string text = content_of(path);
  const std::string model = text.substr(0, end_of_model(text));
  Fixture fixture;
  fixture.name = path.stem().string();
  if (model.size() < text.size()) fixture.expected = text.substr(model.size() + 4);
  std::istringstream in(model);
  int number = 0;
  try {
    fixture.model = model_of(model);
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (!line.starts_with("# ")) continue;
      const size_t space = line.find(' ', 2);
      const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
      read_comment(line.substr(2, space - 2), rest, fixture);
    }
  } catch (const std::exception& error) {
    throw std::runtime_error(path.filename().string() + ":" + std::to_string(number) + ": " +
                             error.what());
  }
  return fixture;
}

void update_fixture(const Fixture& fixture, const std::string& expected) {
  const fs::path path = path_of(fixture.name);
  const std::string text = content_of(path);
  std::ofstream out(path, std::ios::binary);
  out << text.substr(0, end_of_model(text)) << "---\n" << expected;
  if (!out.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

const std::vector<Fixture>& all_fixtures() {
  static const std::vector<Fixture> fixtures = read_all();
  return fixtures;
}

}  // namespace parsimony::test
