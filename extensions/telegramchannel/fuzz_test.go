package telegramchannel

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"
	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
)

// An update is reported as something that the kernel takes, or it is skipped.
func FuzzUpdate(f *testing.F) {
	for _, seed := range []string{
		`{"update_id":1,"message":{"message_id":2,"date":3,"text":"hello",` +
			`"chat":{"id":7,"type":"private"},"from":{"id":7,"first_name":"A"}}}`,
		`{"update_id":1,"edited_message":{"message_id":2,"edit_date":3,"text":"@test_bot hé🫖 /x@test_bot",` +
			`"entities":[{"type":"mention","offset":0,"length":9},{"type":"bot_command","offset":15,"length":99}],` +
			`"chat":{"id":-7,"type":"supergroup","is_forum":true},"from":{"id":7,"first_name":""},` +
			`"is_topic_message":true,"message_thread_id":4}}`,
		`{"update_id":1,"message":{"message_id":2,"caption":"x","photo":[{"file_id":"x"}],` +
			`"media_group_id":"5","chat":{"id":7,"type":"private"},"from":{"id":7}}}`,
		`{"update_id":9223372036854775807,"message":{"entities":[{"type":"mention","offset":-5,"length":-1}],` +
			`"text":"x","chat":{"id":7,"type":"group"},"from":{"id":7},"reply_to_message":{"from":{"id":100001}}}}`,
		`{"update_id":"x"}`, `[]`, `null`, "\xff", `{"message":null}`,
	} {
		f.Add([]byte(seed))
	}
	me := &models.User{ID: 100001, IsBot: true, Username: "test_bot"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var u models.Update
		if json.Unmarshal(raw, &u) == nil {
			if p := parseUpdate(&u, me, &recent{}); p != nil {
				m, dedupe := p.Message, p.Dedupe
				b, err := json.Marshal(m)
				if err != nil || len(b) > contract.MaxPayload || !utf8.ValidString(m.Text) || dedupe == "" || m.UserID == "" ||
					m.ConversationID == "" {
					t.Errorf("reported: %s with the key %q, %v", b, dedupe, err)
				}
			}
		}
		p := &poller{activation: &activation{log: hclog.NewNullLogger()}, me: me}
		if a := p.decode(raw); len(a.reports) > 1 {
			t.Errorf("one update makes %d reports", len(a.reports))
		}
	})
}
