// Writes what the fuzzers start from: a model and a plan per fixture of tests/operators/, a model
// with external data, a mask file, and a ledger.
//
//   make_seeds FOLDER
#include <filesystem>
#include <fstream>

#include "parsimony/masks/mask.h"
#include "tests/properties/workbench.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/fixture.h"

namespace {

void save(const onnx::ModelProto& model, const std::filesystem::path& path) {
  std::ofstream out(path, std::ios::binary);
  model.SerializeToOstream(&out);
}

void entry(onnx::TensorProto& tensor, const char* key, const char* value) {
  auto& pair = *tensor.add_external_data();
  pair.set_key(key);
  pair.set_value(value);
}

/// tests/fuzz/onnx_reader.cc provides the 256 bytes of data.bin.
onnx::ModelProto with_external_data() {
  onnx::ModelProto model = parsimony::test::model_of(
      "g (float[1,2,4,4] x) => (float[1,3,4,4] y) { a = Conv(x, w) b = Relu(a) y = Conv(b, v) }");
  parsimony::test::add_weight(model, "w", "4x2x1x1");
  parsimony::test::add_weight(model, "v", "3x4x1x1");
  onnx::TensorProto& w = *model.mutable_graph()->mutable_initializer(0);
  w.clear_raw_data();
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  entry(w, "location", "data.bin");
  entry(w, "offset", "64");
  entry(w, "length", "32");
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  for (const char* name : {"onnx_reader", "plan", "safetensors", "ledger"}) {
    std::filesystem::create_directories(folder / name);
  }
  for (const auto& fixture : parsimony::test::all_fixtures()) {
    save(fixture.model, folder / "onnx_reader" / (fixture.name + ".onnx"));
    const parsimony::test::Workbench bench(fixture);
    bench.plan(parsimony::test::random_masks(bench.coupling(), 0.5, 1))
        .save((folder / "plan" / (fixture.name + ".json")).string());
  }
  save(with_external_data(), folder / "onnx_reader" / "external_data.onnx");
  parsimony::write_masks((folder / "safetensors" / "two.safetensors").string(),
                         {{"a", {2, 3}, {1, 0, 1, 1, 0, 1}}, {"b", {}, {1}}});
  std::ofstream ledger(folder / "ledger" / "two.jsonl", std::ios::binary);
  for (const double sparsity : {0.0, 0.5}) {
    ledger << parsimony::to_json_line(parsimony::test::sample_point("l1", sparsity, 1)) << "\n";
  }
  return 0;
}
