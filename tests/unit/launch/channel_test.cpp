#include "launch/job/channel.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "launch/job/agent_protocol.h"
#include "launch/processes/child_process.h"

namespace lockstep {
namespace {

struct Reader {
  FrameReader reader;
  std::vector<std::pair<char, std::string>> frames;
  void take(std::string_view bytes) {
    reader.take(bytes,
                [&](const Frame& f) { frames.emplace_back(f.kind, std::string(f.payload)); });
  }
};

const std::string kBegin = "lockstep agent stream 1\n";

TEST(FrameReader, PutsFramesTogetherWhateverPiecesTheyComeIn) {
  std::string stream = kBegin + encode_frame('a', "one") + encode_frame('b', "") +
                       encode_frame('c', std::string(100000, 'x'));
  for (std::size_t piece : {1u, 2u, 7u, 4096u, 1000000u}) {
    Reader r;
    for (std::size_t at = 0; at < stream.size(); at += piece) r.take(stream.substr(at, piece));
    ASSERT_EQ(r.frames.size(), 3u) << piece;
    EXPECT_EQ(r.frames[0], std::make_pair('a', std::string("one")));
    EXPECT_EQ(r.frames[1], std::make_pair('b', std::string()));
    EXPECT_EQ(r.frames[2].second.size(), 100000u);
  }
}

TEST(FrameReader, PassesOverWhatALoginShellSays) {
  Reader r;
  r.take("Welcome to this machine\nLast login: never\n");
  EXPECT_FALSE(r.reader.begun());
  r.take(kBegin + encode_frame('a', "1"));
  EXPECT_EQ(r.frames.size(), 1u);
}

TEST(FrameReader, RefusesWhatIsNoStreamOfOurs) {
  Reader endless;
  EXPECT_THROW(for (int i = 0; i < 100; ++i) endless.take(std::string(1000, 'x')), MachineError);
  Reader broken;
  broken.take(kBegin);
  EXPECT_THROW(broken.take("\xFF\xFF\xFF\xFF"), MachineError);
  Reader empty;
  empty.take(kBegin);
  EXPECT_THROW(empty.take(std::string(4, '\0')), MachineError);
}

TEST(Channel, SendsMoreThanAPipeHoldsWithoutWaiting) {
  EventLoop loop;
  Pipe there = open_pipe(), back = open_pipe();
  Channel sender(loop, std::move(back.read_end), std::move(there.write_end));
  Channel receiver(loop, std::move(there.read_end), std::move(back.write_end));
  std::size_t received = 0;
  receiver.listen([&](const Frame& f) { received += f.payload.size(); }, [](const std::string&) {});
  sender.begin();
  for (int i = 0; i < 30; ++i) sender.send('x', std::string(100000, 'y'));
  EXPECT_GT(sender.waiting(), 2000000u);
  for (int i = 0; i < 1000 && received < 3000000; ++i) loop.wait(Clock::now());
  EXPECT_EQ(received, 3000000u);
  EXPECT_EQ(sender.waiting(), 0u);
}

TEST(Channel, TellsOnceThatTheOtherEndHasGone) {
  ::signal(SIGPIPE, SIG_IGN);
  EventLoop loop;
  Pipe there = open_pipe(), back = open_pipe();
  Channel channel(loop, std::move(back.read_end), std::move(there.write_end));
  int ends = 0;
  channel.listen([](const Frame&) {},
                 [&](const std::string& why) {
                   ++ends;
                   EXPECT_EQ(why, "");
                 });
  there.read_end.close();
  back.write_end.close();
  channel.send('a');
  for (int i = 0; i < 3; ++i) loop.wait(Clock::now());
  EXPECT_EQ(ends, 1);
  channel.send('a');  // of no effect
}

TEST(AgentProtocol, BringsOrdersOverUnchanged) {
  StartOrder order;
  order.command = {"", "train", "caf\xc3\xa9 \xff.toml", "a=\"b\"\n"};
  order.first_rank = 2;
  order.ranks = 3;
  order.size = 7;
  order.environment = {"A=1", "B=\x01"};
  order.terminal = {true, false};
  order.columns = 120;
  order.master_port = 1234;
  auto back = decode<StartOrder>(encode(order));
  EXPECT_EQ(back.command, order.command);
  EXPECT_EQ(back.environment, order.environment);
  EXPECT_EQ(back.first_rank, 2);
  EXPECT_EQ(back.terminal, order.terminal);
  EXPECT_EQ(back.columns, 120);
  EXPECT_EQ(back.master_port, 1234);
  std::string payload = encode(RankBytes{5, kStandardError, "bytes\0\xff"});
  auto bytes = decode<RankBytes>(payload);
  EXPECT_EQ(bytes.rank, 5);
  EXPECT_EQ(bytes.stream, kStandardError);
  EXPECT_EQ(bytes.bytes, "bytes");
}

TEST(AgentProtocol, RefusesWhatItDidNotWrite) {
  EXPECT_THROW(decode<StopOrder>("{}"), MachineError);
  EXPECT_THROW(decode<AgentHello>("not JSON"), MachineError);
  EXPECT_THROW(decode<AgentHello>("{\"version\": 1}"), MachineError);
  EXPECT_THROW(decode<RankBytes>("abc"), MachineError);
  EXPECT_THROW(decode_number("12a"), MachineError);
  EXPECT_EQ(decode_number("-12"), -12);
}

}  // namespace
}  // namespace lockstep
