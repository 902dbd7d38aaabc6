package discordchannel

import (
	"encoding/json"
	"time"
)

// Types of channels that are threads, as Discord numbers them, from and to.
const (
	firstThread = 10
	lastThread  = 12
)

// Types of messages that people write.
const (
	messageDefault = 0
	messageReply   = 19
)

// referenceForward is the type of a message reference that is not a reply.
const referenceForward = 1

// flagVoice marks a voice message.
const flagVoice = 1 << 13

// user is a person or a bot.
type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
	Locale     string `json:"locale"`
}

// member is what a user is in one server.
type member struct {
	Nick string `json:"nick"`
	User *user  `json:"user"`
}

// message is a message of a channel. GuildID is empty in a private chat.
type message struct {
	ID           string          `json:"id"`
	ChannelID    string          `json:"channel_id"`
	GuildID      string          `json:"guild_id"`
	Type         int             `json:"type"`
	Flags        int             `json:"flags"`
	Author       *user           `json:"author"`
	Member       *member         `json:"member"`
	WebhookID    string          `json:"webhook_id"`
	Content      string          `json:"content"`
	Mentions     []user          `json:"mentions"`
	Nonce        json.RawMessage `json:"nonce"` // a string or a number
	Timestamp    time.Time       `json:"timestamp"`
	EditedAt     *time.Time      `json:"edited_timestamp"`
	Attachments  []upload        `json:"attachments"`
	StickerItems []sticker       `json:"sticker_items"`
	Poll         *struct{}       `json:"poll"`
	Reference    *reference      `json:"message_reference"`
	RepliedTo    *message        `json:"referenced_message"`
	Snapshots    []struct {
		Message message `json:"message"`
	} `json:"message_snapshots"`
}

// text has the fields that a message needs, for one that has something in it that this
// version doesn't know.
type text struct {
	ID        string     `json:"id"`
	ChannelID string     `json:"channel_id"`
	GuildID   string     `json:"guild_id"`
	Type      int        `json:"type"`
	Author    *user      `json:"author"`
	WebhookID string     `json:"webhook_id"`
	Content   string     `json:"content"`
	Mentions  []user     `json:"mentions"`
	Timestamp time.Time  `json:"timestamp"`
	EditedAt  *time.Time `json:"edited_timestamp"`
}

func (t text) message() message {
	return message{ID: t.ID, ChannelID: t.ChannelID, GuildID: t.GuildID, Type: t.Type, Author: t.Author,
		WebhookID: t.WebhookID, Content: t.Content, Mentions: t.Mentions, Timestamp: t.Timestamp, EditedAt: t.EditedAt}
}

// decodeMessage parses a message. A person's text must not be lost because of another
// field.
func decodeMessage(raw json.RawMessage) (m message, err error) {
	if err = json.Unmarshal(raw, &m); err == nil {
		return m, nil
	}
	var t text
	if err := json.Unmarshal(raw, &t); err != nil {
		return message{}, err
	}
	return t.message(), nil
}

type reference struct {
	Type      int    `json:"type,omitempty"`
	MessageID string `json:"message_id"`
	ChannelID string `json:"channel_id,omitempty"`
	// Lenient: a message that replies to a deleted one is sent all the same.
	FailIfNotExists *bool `json:"fail_if_not_exists,omitempty"`
}

// upload is a file of a message.
type upload struct {
	ID          string `json:"id"`
	Filename    string `json:"filename"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	URL         string `json:"url"`
}

type sticker struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Format int    `json:"format_type"`
}

// guildChannel is a channel or a thread.
type guildChannel struct {
	ID       string `json:"id"`
	Type     int    `json:"type"`
	Name     string `json:"name"`
	ParentID string `json:"parent_id"`
	GuildID  string `json:"guild_id"`
}

// Types of interactions.
const (
	interactionCommand   = 2
	interactionComponent = 3
)

// interaction is a slash command or the press of a button.
type interaction struct {
	ID        string   `json:"id"`
	Type      int      `json:"type"`
	Token     string   `json:"token"`
	ChannelID string   `json:"channel_id"`
	GuildID   string   `json:"guild_id"`
	Locale    string   `json:"locale"`
	User      *user    `json:"user"`   // in a private chat
	Member    *member  `json:"member"` // in a server
	Message   *message `json:"message"`
	Data      struct {
		Name     string `json:"name"`
		CustomID string `json:"custom_id"`
		Options  []struct {
			Value json.RawMessage `json:"value"`
		} `json:"options"`
	} `json:"data"`
}

// reaction is an emoji that a person put on a message.
type reaction struct {
	UserID    string  `json:"user_id"`
	ChannelID string  `json:"channel_id"`
	MessageID string  `json:"message_id"`
	GuildID   string  `json:"guild_id"`
	AuthorID  string  `json:"message_author_id"`
	Member    *member `json:"member"`
	Emoji     struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"emoji"`
}

// newMessage is a message to send, or the change of one.
type newMessage struct {
	Content      *string     `json:"content,omitempty"`
	Nonce        string      `json:"nonce,omitempty"`
	EnforceNonce bool        `json:"enforce_nonce,omitempty"`
	Reference    *reference  `json:"message_reference,omitempty"`
	Components   []component `json:"components"` // empty: none
	Mentions     mentions    `json:"allowed_mentions"`
}

// mentions allows none: a text must not ring for a whole server.
type mentions struct {
	Parse       []string `json:"parse"`
	RepliedUser bool     `json:"replied_user"`
}

// Types and styles of components.
const (
	componentRow    = 1
	componentButton = 2
	styleSecondary  = 2
)

type component struct {
	Type       int         `json:"type"`
	Style      int         `json:"style,omitempty"`
	Label      string      `json:"label,omitempty"`
	CustomID   string      `json:"custom_id,omitempty"`
	Components []component `json:"components,omitempty"`
}
