// Files of the source tree that are made by tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "parsimony/base/files.h"

namespace parsimony::test {

/// The file in the source tree has this text; PARSIMONY_UPDATE_FIXTURES=1 writes it.
inline void expect_made(const std::string& name, const std::string& made) {
  const std::string path = std::string(PARSIMONY_SOURCE_DIR) + "/" + name;
  if (std::getenv("PARSIMONY_UPDATE_FIXTURES") != nullptr) write_file(path, made);
  EXPECT_EQ(read_file(path), made);
}

/// The same of what stands between two marks: `<!-- NAME: begin …-->` and `<!-- NAME: end -->`.
inline void expect_made_between(const std::string& file, const std::string& name,
                                const std::string& made) {
  std::string text = read_file(std::string(PARSIMONY_SOURCE_DIR) + "/" + file);
  const size_t begin = text.find("-->\n", text.find("<!-- " + name + ": begin")) + 4;
  const size_t end = text.find("<!-- " + name + ": end -->");
  ASSERT_LE(begin, end);
  expect_made(file, text.replace(begin, end - begin, made));
}

}  // namespace parsimony::test
