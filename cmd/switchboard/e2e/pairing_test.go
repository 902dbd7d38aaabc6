package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

var pairingCode = regexp.MustCompile(`pairing approve ([A-Z2-9]{8})`)

// pair has a stranger write and be approved, who is greeted then; n is how many
// messages the chat had before.
func (w *world) pair(user int64, n int) {
	w.t.Helper()
	w.telegram.Say(user, "hello")
	m := pairingCode.FindStringSubmatch(w.told(user, n+1).Text)
	if m == nil {
		w.t.Fatalf("there is no code in %q", w.texts(user))
	}
	person, err := w.control().Approve(w.ctx(), &adminv1.ApproveRequest{Code: strings.ToLower(m[1])})
	if err != nil {
		w.t.Fatal(err)
	}
	if person.UserId != strconv.FormatInt(user, 10) {
		w.t.Errorf("approved was %+v", person)
	}
	if got := w.told(user, n+2).Text; !strings.Contains(got, "You are connected") {
		w.t.Errorf("the greeting is %q", got)
	}
}

func TestStrangerGetsACodeAFewTimesAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers())
	w.start()
	w.telegramReady()
	for i := range 3 {
		if i == 2 { // what was given is remembered
			w.restart()
			w.telegramReady()
		}
		w.telegram.Say(clara, "/status")
		code := pairingCode.FindString(w.told(clara, i+1).Text)
		if first := pairingCode.FindString(w.texts(clara)[0]); code == "" || code != first {
			t.Errorf("message %d is %q", i+1, w.texts(clara)[i])
		}
	}
	w.telegram.Say(clara, "say hi to me in Telegram")
	w.read(w.telegram.Say(clara, "/help"))
	w.settled()
	if n := len(w.texts(clara)); n != 3 {
		t.Errorf("the stranger got %d messages", n)
	}
	if rows := w.query(`SELECT count(*) FROM session`); rows[0] != "0" {
		t.Errorf("there are %s sessions", rows[0])
	}
	if n := w.count("user.message"); n != 0 {
		t.Errorf("%d messages of the stranger are stored", n)
	}
}

// read waits until a message has been taken from Telegram for good.
func (w *world) read(sent telegramtest.Sent) {
	w.t.Helper()
	if err := w.telegram.WaitConfirmed(w.ctx(), sent.Update); err != nil {
		w.t.Fatal(err)
	}
}

// What many strangers write is nowhere in the home, and takes no room there. A kernel
// that is killed meanwhile goes on behind the last message.
func TestTextsOfStrangersAreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers())
	w.start()
	w.telegramReady()
	const secret = "a-strangers-text-7c1f"
	flood := func(messages int) (last telegramtest.Sent) {
		for i := range messages {
			user := 5000 + int64(i%300)
			last = w.telegram.Say(user, secret+strings.Repeat(" and so on", 200))
		}
		return last
	}
	w.read(flood(300))
	w.settled()
	before := w.storedBytes()
	last := flood(1500)
	w.restart()
	w.telegramReady()
	w.read(last)
	w.settled()
	if n := w.count("user.message"); n != 0 {
		t.Errorf("%d messages of strangers are stored", n)
	}
	// Each of them is two kilobytes; two more codes for some of them are shown.
	if grown := w.storedBytes() - before; grown > 1<<20 {
		t.Errorf("1500 messages of strangers take %d bytes", grown)
	}
	w.stop()
	found, err := exec.CommandContext(t.Context(), "grep", "-rlaF", secret, w.home).Output()
	if len(found) > 0 || err == nil {
		t.Errorf("the text of a stranger is in %s", found)
	}

	// A person whose message came into the middle of that is served.
	w.start()
	w.telegramReady()
	w.must("pairing", "clear")
	w.pair(anna, 0)
	w.telegram.Say(anna, "list channels")
	if got := w.told(anna, 3).Text; !strings.Contains(got, "telegram_channel") {
		t.Errorf("the admitted person reads %q", got)
	}
}

// storedBytes is the size of what events take in the store.
func (w *world) storedBytes() (n int) {
	w.t.Helper()
	_, _ = fmt.Sscan(w.query(`SELECT (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size())`)[0], &n)
	return n
}

func TestStrangerInAGroupIsMetWithSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.start()
	w.telegramReady()
	mention := "@" + w.telegram.Bot().Username + " list channels"
	say := func(user int64) telegramtest.Sent {
		return w.telegram.Inject(telegramtest.Incoming{
			Chat: telegramtest.Chat{ID: group, Type: telegramtest.Group, Title: "Family"},
			From: telegramtest.User{ID: user, FirstName: "Someone"}, Text: mention,
		})
	}
	w.read(say(clara))
	say(anna)
	for i, want := range []string{"/household", "Telegram"} {
		if got := w.told(group, i+1).Text; !strings.Contains(got, want) {
			t.Errorf("the group reads %q, want %q", got, want)
		}
	}
	w.settled()
	if n := len(w.texts(group)); n != 2 {
		t.Errorf("the group reads %q", w.texts(group))
	}
	if n := len(w.texts(clara)); n != 0 {
		t.Errorf("the stranger got %q", w.texts(clara))
	}
}

func TestFirstApprovedIsTheOwnerAndNoticesGoThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers())
	w.start()
	w.telegramReady()
	w.telegram.Say(clara, "I was here first")
	w.told(clara, 1)
	w.pair(boris, 0)
	w.pair(anna, 0)
	people, err := w.control().People(w.ctx(), &adminv1.PeopleRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range people.Approved {
		if owner := p.UserId == strconv.Itoa(boris); p.Owner != owner {
			t.Errorf("%s is the owner: %v", p.UserId, p.Owner)
		}
	}
	if len(people.Approved) != 2 || len(people.Waiting) != 1 {
		t.Errorf("people are %+v", people)
	}
	// The second one is served in a conversation of their own.
	w.telegram.Say(anna, "list channels")
	if got := w.told(anna, 3).Text; !strings.Contains(got, "telegram_channel") {
		t.Errorf("the second person reads %q", got)
	}
	// What is sent from elsewhere is for the owner.
	w.attach().ask(`send "dinner is ready" to Telegram`)
	if got := w.told(boris, 3).Text; !strings.Contains(got, "dinner is ready") {
		t.Errorf("the owner reads %q", got)
	}
	w.settled()
	if a, b, c := len(w.texts(anna)), len(w.texts(boris)), len(w.texts(clara)); a != 3 || b != 3 || c != 1 {
		t.Errorf("messages: %d, %d, %d", a, b, c)
	}
}

func TestRevokedPersonIsAStrangerAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers())
	w.start()
	w.telegramReady()
	w.pair(anna, 0)
	c := w.control()
	revoke := &adminv1.RevokeRequest{Channel: "telegram_channel", UserId: strconv.Itoa(anna)}
	if _, err := c.Revoke(w.ctx(), revoke); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Revoke(w.ctx(), revoke); !errors.Is(err, contract.ErrNotFound) {
		t.Errorf("revoking twice: %v", err)
	}
	w.settled()
	w.restart()
	w.telegramReady()
	w.telegram.Say(anna, "list channels")
	if got := w.told(anna, 3).Text; !pairingCode.MatchString(got) {
		t.Errorf("the revoked person reads %q", got)
	}
	if _, err := w.control().Approve(w.ctx(), &adminv1.ApproveRequest{Code: "AAAAAAAA"}); !errors.Is(err,
		contract.ErrNotFound) {
		t.Errorf("approving a made-up code: %v", err)
	}
}

func TestAllowFromAdmitsWithoutPairingAndCanBeEditedWhileRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers())
	w.start()
	w.telegramReady()
	w.telegram.Say(clara, "list channels")
	if got := w.told(clara, 1).Text; !pairingCode.MatchString(got) {
		t.Fatalf("the stranger reads %q", got)
	}
	w.config(`channels: {default: telegram_channel, telegram_channel: {allow_from: ["1003"]}}`)
	c := w.control()
	w.eventually("the edit to be in force", func() bool {
		for _, ch := range w.channels(c) {
			if ch.ID == "telegram_channel" {
				return ch.Default
			}
		}
		return false
	})
	w.telegram.Say(clara, "list channels")
	if got := w.told(clara, 2).Text; !strings.Contains(got, "telegram_channel") {
		t.Errorf("the admitted person reads %q", got)
	}
}
