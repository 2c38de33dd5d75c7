// Which stream of a mesh a sum takes.
#include "dist/collectives/mesh.h"

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "base/descriptor.h"
#include "kernels/kernel_table.h"

namespace lockstep {
namespace {

constexpr int kStreams = 4;

// Two members, and what each stream of the first one has sent.
class MeshStreams : public ::testing::Test {
 protected:
  MeshStreams() {
    const Token secret = random_token();
    auto store = c10::make_intrusive<c10d::HashStore>();
    auto connect = [&](int me) {
      MeshMembers members{.me = me, .address = "127.0.0.1", .secret = secret, .streams = kStreams};
      members.ranks = {0, 1};
      auto sockets = connect_mesh(*store, members, std::chrono::seconds(20));
      return std::pair(members, sockets);
    };
    auto other = std::async(std::launch::async, connect, 1);
    auto [members, sockets] = connect(0);
    for (const std::vector<int>& stream : sockets) sent_by_.emplace_back(::dup(stream.at(1)));
    mesh_.push_back(std::make_unique<Mesh>(members, sockets));
    auto [others, their_sockets] = other.get();
    mesh_.push_back(std::make_unique<Mesh>(others, their_sockets));
  }

  // Starts `count` sums of `bytes` at once and waits for them. Their results must be right.
  void sum(int count, std::size_t bytes) {
    const Summation summation{4, kernels().sum.fp32};
    std::vector<std::vector<float>> data;
    for (int i = 0; i < 2 * count; ++i) {
      data.emplace_back(bytes / 4, static_cast<float>(i));
    }
    std::vector<std::shared_future<void>> running;
    for (int i = 0; i < 2 * count; ++i) {
      running.push_back(mesh_.at(static_cast<std::size_t>(i % 2))
                            ->start_sum(std::as_writable_bytes(std::span(data[i])), summation));
    }
    for (const auto& done : running) done.get();
    for (int i = 0; i < 2 * count; ++i) {
      const auto want = static_cast<float>(4 * (i / 2) + 1);
      EXPECT_EQ(data[i], std::vector<float>(bytes / 4, want)) << "sum " << i / 2;
    }
  }

  std::vector<uint64_t> bytes_of_streams() const {
    std::vector<uint64_t> out;
    for (const Descriptor& socket : sent_by_) {
      tcp_info info{};
      socklen_t length = sizeof info;
      EXPECT_EQ(::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
      out.push_back(info.tcpi_bytes_sent);
    }
    return out;
  }

  std::vector<Descriptor> sent_by_;
  std::vector<std::unique_ptr<Mesh>> mesh_;
};

// A stream that is idle loses its window: on long paths sums on streams in turn took three times as
// long (benchmarks/notes/2026-11-slow-links.md).
TEST_F(MeshStreams, SumsInTurnStayOnOne) {
  for (int i = 0; i < 20; ++i) sum(1, 64 << 10);
  const std::vector<uint64_t> bytes = bytes_of_streams();
  EXPECT_GE(bytes.at(0), 20 * (64u << 10));
  for (std::size_t stream = 1; stream < kStreams; ++stream) EXPECT_LT(bytes.at(stream), 1000u);
}

TEST_F(MeshStreams, LargeSumsAtOnceTakeAll) {
  constexpr std::size_t kBytes = 4 << 20;
  for (int i = 0; i < 3; ++i) sum(2 * kStreams, kBytes);
  for (const uint64_t bytes : bytes_of_streams()) EXPECT_GE(bytes, kBytes);
}

}  // namespace
}  // namespace lockstep
