// Measured times of layers, as a file.
//
//   {"parsimony_latency": 1, "machine": "AMD EPYC", "engine": "libtorch 2.15.0", "threads": 1,
//    "tables": [{"what": "Conv 16x16x3x3, Relu", "key": "…", "measured": 1763683200,
//                "x": [1, 4, 8, 16], "y": [1], "seconds": [1.1e-05, …]}, …]}
#pragma once

#include <string>
#include <string_view>

#include "parsimony/pruners/latency/model.h"

namespace parsimony {

struct LatencyFile {
  std::string machine;  ///< model of the processor, or the command that measured
  std::string engine;   ///< name and version, or "command"
  int threads = 1;
  LatencyTables tables;
};

std::string to_json(const LatencyFile& file);

/// @throws ConfigError, naming file and place, if it is no such file
LatencyFile parse_latency_file(std::string_view text, std::string_view file_name);

/// @throws ConfigError, naming the file, if it was measured on another machine, engine or number of
/// threads than `expected` says
void check_origin(const LatencyFile& found, const LatencyFile& expected,
                  std::string_view file_name);

}  // namespace parsimony
