// Package slacktest is a Slack workspace for tests and benchmarks: the Web API and the
// WebSockets of Socket Mode, on loopback. It serves the methods that an app in
// conversations needs (apps.connections.open, auth.test, chat.postMessage, chat.update,
// chat.delete, conversations.open, conversations.info, conversations.history,
// conversations.replies, users.info, files.info, files.getUploadURLExternal,
// files.completeUploadExternal, uploads and downloads) and enforces the rules of the
// real service, with its error codes.
//
// # Rules
//
//   - tokens: the app-level token opens connections, the bot's makes the other calls;
//     invalid_auth for an unknown one, token_revoked for a revoked one;
//   - conversations: channel_not_found, not_in_channel, is_archived, thread_not_found;
//   - texts: 40,000 characters are kept of a new message, and an edit takes 4,000
//     (msg_too_long); 50 blocks, with the limits of the blocks that bots use, refused
//     with invalid_blocks; an edit without blocks keeps those of the message;
//   - envelopes: one that is not acknowledged within three seconds, or whose connection
//     ended, is sent again at once, after one minute and after five, with its
//     retry_attempt, and then given up; at most ten connections;
//   - with [WithLimits]: the rates of methods, for chat.postMessage of each
//     conversation, refused with 429 and Retry-After, on the clock of [WithClock].
//
// # Differences from Slack
//
// An envelope whose connection ended is sent again as soon as there is a connection,
// also when that is later than five minutes. Files are shared in the call that completes
// their upload; Slack takes a moment. The limit of all text in the blocks of a message
// (13,000 characters) is not documented by Slack.
//
// # Concurrency
//
// All methods of [Server] may be called from any goroutine. Waiting is driven by
// channels, never by polling. [Server.Close] ends every connection; [Start] calls it
// when the test ends.
package slacktest
