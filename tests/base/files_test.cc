// Files that are looked at where they lie.
#include "parsimony/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <thread>

#include "parsimony/base/errors.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

std::string numbers(size_t count) {
  std::string text;
  for (size_t i = 0; text.size() < count; ++i) text += std::to_string(i) + " ";
  return text;
}

TEST(MappedFile, HasTheBytesOfTheFile) {
  const TemporaryFolder folder;
  const std::string text = numbers(100000);
  write_file(folder / "text", text);
  const MappedFile file(folder / "text");
  EXPECT_EQ(file.bytes(), text);
}

TEST(MappedFile, WhatWasReleasedComesBack) {
  const TemporaryFolder folder;
  const std::string text = numbers(100000);
  write_file(folder / "text", text);
  const MappedFile file(folder / "text");
  file.release(file.bytes());
  file.release(file.bytes().substr(5000, 50000));
  file.release(file.bytes().substr(text.size()));
  EXPECT_EQ(file.bytes(), text);
}

TEST(MappedFile, MayBeEmpty) {
  const TemporaryFolder folder;
  write_file(folder / "empty", "");
  const MappedFile file(folder / "empty");
  EXPECT_EQ(file.bytes(), "");
  file.release(file.bytes());
}

TEST(MappedFile, ReadsAPipeWhole) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string text = numbers(200000);
  std::jthread writer([&] { std::ofstream(pipe) << text; });
  const MappedFile file(pipe);
  file.release(file.bytes());
  EXPECT_EQ(file.bytes(), text);
}

TEST(MappedFile, IsNamedWhenItCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_THROW(MappedFile(folder / "absent"), IoError);
  EXPECT_THROW(MappedFile(folder / "."), IoError);
}

}  // namespace
}  // namespace parsimony::test
