// The text fixtures of tests/operators/: a small model in the notation of OnnxParser, below comment
// lines that say what the analysis should find in it.
//
//   # weight NAME 8x3x3x3 [TYPE] [ones|zeros|positive|input]   an initializer of seeded numbers;
//                      "input": it is listed as a graph input as well
//   # groups: 8 4      sizes of the groups, in order; nothing: there is none
//   # mixes: g1        the groups that pass an operator that mixes
//   # whole: W2[0] TEXT    a dimension of a matrix stays whole for a reason that contains TEXT; one
//                      that stays whole because of the graph's ends need not be listed
//   # input: 2x8:int64     as --input, for what the model leaves open
//   # granularity: head
//   # oracle: no, WHY  ONNX Runtime cannot judge this model
//   # judge: no, WHY   libonnx's shape inference cannot judge it
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony::test {

struct Whole {
  std::string axis;    ///< "W2[0]"
  std::string reason;  ///< part of the reason
};

struct Fixture {
  std::string name;
  onnx::ModelProto model;
  std::optional<std::vector<int>> groups;
  std::vector<std::string> mixes;
  std::vector<Whole> whole;
  std::vector<std::string> inputs;
  std::string granularity = "channel";
  bool oracle = true;
  bool judge = true;
};

/// @throws std::runtime_error naming file and line
Fixture read_fixture(const std::filesystem::path& path);

/// Every fixture, by name. The environment variable PARSIMONY_FIXTURE selects one.
const std::vector<Fixture>& all_fixtures();

/// A model in the notation of OnnxParser; the header is IR 8, opset 13 if `text` has none.
onnx::ModelProto model_of(const std::string& text);

/// Adds an initializer "8x3x3x3" of seeded numbers between -1 and 1, in raw_data.
void add_weight(onnx::ModelProto& model, const std::string& name, const std::string& dims,
                const std::string& type = "float", const std::string& kind = "");

/// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  /// Names of what lies in the folder, sorted.
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

}  // namespace parsimony::test
