// Package telegramtest is a Telegram Bot API server for tests and benchmarks.
// It listens on loopback, speaks the methods a text bot needs (getMe,
// getUpdates, sendMessage, editMessageText, deleteMessage, sendChatAction,
// setMyCommands, getMyCommands, getWebhookInfo, setWebhook, deleteWebhook) and
// enforces the rules a bot meets in the real service, with its error codes and
// texts.
//
// # What is enforced
//
//   - the token: 404 for one that cannot be a token, 401 for an unknown one;
//   - texts: 4096 UTF-16 units after entity parsing, not empty after trimming,
//     HTML, MarkdownV2 and explicit entities parsed and refused as Telegram does;
//   - chats: "chat not found" for one that never wrote, 403 for a bot that was
//     blocked or kicked, "message thread not found" for an unknown topic;
//   - updates: offset, limit, timeout and allowed_updates; an update is given
//     again until a higher offset confirms it; a second getUpdates ends the
//     first with 409, and so does a webhook;
//   - with [WithLimits]: the rates per chat, per group and per bot, which edits
//     use up as messages do, refused with 429 and retry_after, measured on the clock of [WithClock].
//
// Rate limits are off unless asked for, so that a test which is not about them
// need not wait. Everything else cannot be switched off.
//
// # What is simpler than the real thing
//
// Media are never downloaded; message ids count per chat; the legacy
// "Markdown" parse mode, inline keyboards and webhooks' delivery are not
// spoken; HTML and MarkdownV2 cover the tags and marks that a text bot uses.
// Real Telegram drops some bad entities silently where this server refuses
// them: a test should hear of it.
//
// # Concurrency
//
// All methods of [Server] may be called from any goroutine. Waiting is driven
// by channels, never by polling. Messages of one chat are in the order in
// which they were accepted; between chats there is no order. [Server.Close]
// ends every open request; [Start] calls it when the test ends.
package telegramtest
