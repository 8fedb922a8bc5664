// Verification by ONNX Runtime, through the script ort_compare.mjs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace parsimony::cli {

struct OracleJob {
  std::string original;
  std::string small;
  std::string plan;
  int inputs = 0;  ///< random inputs to try; 0: as many as the script likes
  int seed = 1;
  std::vector<std::string> specs;  ///< of --input
};

struct OracleOutput {
  std::string name;
  double difference = 0;  ///< max|a - b| / max|a|
  double tolerance = 0;
};

struct OracleVerdict {
  bool fine = false;
  bool mixes = false;     ///< only run and found finite: a group passes a mixing operator
  bool weak = false;      ///< alike only as far as the original rounds, which is far
  double difference = 0;  ///< of the worst output; infinite if it is not finite
  double tolerance = 0;
  int64_t probes = 0;
  std::vector<OracleOutput> outputs;
  std::vector<std::string> notes;
  std::string worst;  ///< the worst output in words, if the verdict is not fine
};

/// @throws UnsupportedError without Node.js or ONNX Runtime, or if that cannot run the original
/// @throws ConfigError, IoError for what the script objects to
OracleVerdict ask_oracle(const OracleJob& job);

}  // namespace parsimony::cli
