// Package discordtest is a Discord server for tests and benchmarks. It listens on
// loopback and serves the parts of the gateway (version 10) and of the REST API that a
// bot with text, files, buttons and slash commands needs, and enforces the rules of the
// real service, with its error codes.
//
// # Gateway
//
// HELLO, IDENTIFY, READY, heartbeats and their acknowledgements, RESUME with the events
// after a sequence number, RECONNECT, INVALID_SESSION, and the events MESSAGE_CREATE,
// MESSAGE_UPDATE, INTERACTION_CREATE, MESSAGE_REACTION_ADD and any that a test emits.
// Connections are closed with Discord's codes: an unknown token (4004), a privileged
// intent that is off (4014), a session that ended (4009 or INVALID_SESSION), a payload
// before IDENTIFY (4003), a second IDENTIFY (4005), a sequence number that was never sent
// (4007), more than 120 payloads in a minute (4008). Without the intent for contents, a
// message of a server has no text unless it mentions the bot.
//
// # REST
//
// Users, channels, messages with histories, files as multipart, typing, private chats,
// slash commands, the answers to interactions within three seconds, downloads of files
// with addresses that expire. Refused as by Discord: texts above 2,000 characters, empty
// messages, more than 10 files, files above 10 MiB, more than 5 rows of 5 buttons, equal
// ids of buttons, unknown channels and messages, edits of another's message, requests
// without the User-Agent that Discord asks for. A nonce that is enforced returns the first
// message for five minutes, by the clock of [WithClock].
//
// With [WithLimits] the rates per route and channel and of the bot are enforced, with the
// X-RateLimit headers and status 429. They are off by default, so that other tests need
// not wait. Everything else cannot be switched off.
//
// # Differences from Discord
//
// There is one bot, which sees all channels. Messages have no embeds. Payloads are
// neither compressed nor split into shards.
//
// # Concurrency
//
// All methods of [Server] may be called from any goroutine. Waiting is driven by
// channels, never by polling. [Server.Close] ends every connection; [Start] calls it when
// the test ends.
package discordtest
