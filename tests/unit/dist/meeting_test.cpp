#include "dist/rank/meeting.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/expect_error.h"

namespace lockstep {
namespace {

TEST(Meeting, WhoKnowsTheSecretIsAdmittedAndKnowsIt) {
  const Token secret = random_token();
  Doorkeeper door(secret);
  const Visitor one(secret, door.token()), other(secret, door.token());
  const std::optional<Proof> answer = door.admit(one.introduction());
  ASSERT_TRUE(answer);
  EXPECT_TRUE(one.recognises(*answer));
  EXPECT_FALSE(other.recognises(*answer));
  EXPECT_FALSE(one.recognises(one.introduction().proof)) << "its own words come back";
  EXPECT_TRUE(door.admit(other.introduction()));
}

TEST(Meeting, AnIntroductionIsGoodForOneConnection) {
  const Token secret = random_token();
  Doorkeeper door(secret);
  const Introduction overheard = Visitor(secret, door.token()).introduction();
  EXPECT_TRUE(door.admit(overheard));
  EXPECT_FALSE(door.admit(overheard));
  Introduction altered = overheard;
  altered.nonce[0] = static_cast<unsigned char>(altered.nonce[0] ^ 1U);
  EXPECT_FALSE(door.admit(altered));
  EXPECT_FALSE(Doorkeeper(secret).admit(overheard)) << "another listener";
}

TEST(Meeting, OthersAreNotAdmitted) {
  Doorkeeper door(random_token());
  EXPECT_FALSE(door.admit(Visitor(random_token(), door.token()).introduction()));
  EXPECT_FALSE(door.admit(Visitor({}, door.token()).introduction()));
  EXPECT_FALSE(door.admit({}));
}

// RFC 4231 gives no vector with these inputs; this one is from Python's hmac:
// hmac.new(bytes(16), b"client" + bytes(range(16)) + bytes(range(16, 32)), "sha256").hexdigest()
TEST(Meeting, TheProofIsTheHmacThatTheHeaderSays) {
  Token server, client;
  for (unsigned i = 0; i < 16; ++i) {
    server[i] = static_cast<unsigned char>(i);
    client[i] = static_cast<unsigned char>(16 + i);
  }
  const Proof proof = client_proof({}, server, client);
  std::string hex;
  for (unsigned char byte : proof) hex += fmt::format("{:02x}", byte);
  EXPECT_EQ(hex, "aa44e554e85c2fc9248dd21d85e4793aa95e3a6e67325eafd9f23de113f20656");
  EXPECT_FALSE(same_proof(proof, server_proof({}, server, client)));
}

TEST(Meeting, APlaceComesBackFromItsWords) {
  const MeetingPlace place{"::1", 40123, random_token()};
  const MeetingPlace back = meeting_place_of(to_text(place));
  EXPECT_EQ(back.address, place.address);
  EXPECT_EQ(back.port, place.port);
  EXPECT_EQ(back.token, place.token);
  const std::string token = to_hex(place.token);
  for (const std::string& words : std::vector<std::string>{
           "", "127.0.0.1 1", "127.0.0.1 0 " + token, "127.0.0.1 65536 " + token,
           "127.0.0.1 12x " + token, "127.0.0.1 -1 " + token, "127.0.0.1 1 " + token + " more"}) {
    EXPECT_ERROR(meeting_place_of(words), MachineError, "no place where a rank listens");
  }
  EXPECT_ERROR(meeting_place_of("127.0.0.1 1 00"), MachineError, "no token");
}

}  // namespace
}  // namespace lockstep
