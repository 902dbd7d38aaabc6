package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	cursorKey = "cursor"
	// largest is the size of a mail that is fetched; 25 MB is what most servers take.
	largest = 35 << 20
	// lookAgain is how long a mail waits at most that the server did not announce: one that
	// came just before IDLE began is announced by some servers only with the next one.
	lookAgain = 5 * time.Minute
)

// cursor says which mails were handled.
type cursor struct {
	Validity uint32    `json:"validity"` // UIDVALIDITY of the mailbox
	UID      imap.UID  `json:"uid"`      // the last one
	At       time.Time `json:"at"`       // when the server got that one
}

// receive reports the mails that arrive, until ctx ends or the connection is lost. The SDK
// calls it again.
func (c *channel) receive(ctx context.Context, k *sdk.Kernel) error {
	if !c.configured() {
		<-ctx.Done()
		return nil
	}
	news := make(chan struct{}, 1)
	client, err := c.dial(news)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.settings.IMAP, err)
	}
	defer func() { _ = client.Close() }()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	if err := client.Login(c.settings.User, c.password).Wait(); err != nil {
		return fmt.Errorf("log in to %s as %s: %w; is MAIL_PASSWORD right?", c.settings.IMAP, c.settings.User, err)
	}
	box, err := client.Select(c.settings.Mailbox, nil).Wait()
	if err != nil {
		return fmt.Errorf("open the mailbox %s: %w", c.settings.Mailbox, err)
	}
	k.SetReadiness(sdk.Ready, "")
	at, err := c.place(ctx, box)
	for err == nil && ctx.Err() == nil {
		if at, err = c.fetch(ctx, client, at); err == nil {
			err = wait(ctx, client, news)
		}
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked to stop
	}
	return err
}

func (c *channel) dial(news chan<- struct{}) (*imapclient.Client, error) {
	o := &imapclient.Options{
		TLSConfig: c.tls(c.settings.IMAP),
		UnilateralDataHandler: &imapclient.UnilateralDataHandler{Mailbox: func(m *imapclient.UnilateralDataMailbox) {
			if m.NumMessages != nil {
				select {
				case news <- struct{}{}:
				default:
				}
			}
		}},
	}
	switch c.settings.Security {
	case "none":
		return imapclient.DialInsecure(c.settings.IMAP, o)
	case "starttls":
		return imapclient.DialStartTLS(c.settings.IMAP, o)
	}
	return imapclient.DialTLS(c.settings.IMAP, o)
}

// place is where to begin. What was there before the first start is not answered. A mailbox
// that was made again has other UIDs: there it is the time that counts, and a mail that was
// reported before has its dedupe key.
func (c *channel) place(ctx context.Context, box *imap.SelectData) (at cursor, err error) {
	stored, err := c.kernel.Get(ctx, cursorKey)
	if err != nil {
		return at, err
	}
	if len(stored.Value) > 0 {
		if err := json.Unmarshal(stored.Value, &at); err != nil {
			return at, fmt.Errorf("read the cursor: %w", err)
		}
		if at.Validity != box.UIDValidity {
			c.kernel.Log().Warn("the mailbox was made again, reading what came since", "since", at.At)
			at.Validity, at.UID = box.UIDValidity, 0
		}
		return at, nil
	}
	at = cursor{Validity: box.UIDValidity, UID: box.UIDNext - 1, At: time.Now()}
	return at, c.move(ctx, at)
}

// move stores the cursor alone.
func (c *channel) move(ctx context.Context, at cursor) error {
	_, err := c.kernel.Commit(ctx, at.put())
	return err
}

func (at cursor) put() sdk.Effect {
	data, err := json.Marshal(at)
	if err != nil {
		panic(err) // numbers and a time
	}
	return sdk.Put(cursorKey, data)
}

// wait returns when there may be a new mail.
func wait(ctx context.Context, client *imapclient.Client, news <-chan struct{}) error {
	select {
	case <-news: // came while mails were fetched
		return nil
	default:
	}
	idle, err := client.Idle()
	if err != nil {
		return fmt.Errorf("wait for mail: %w", err)
	}
	select {
	case <-news:
	case <-time.After(lookAgain):
	case <-ctx.Done():
	case <-client.Closed():
		return errors.Join(errors.New("the server closed the connection"), idle.Close())
	}
	return errors.Join(idle.Close(), idle.Wait())
}

// fetch reports the mails after the cursor, in order.
func (c *channel) fetch(ctx context.Context, client *imapclient.Client, at cursor) (cursor, error) {
	var all imap.UIDSet
	all.AddRange(at.UID+1, 0)
	want := &imap.SearchCriteria{UID: []imap.UIDSet{all}}
	if at.UID == 0 {
		want.Since = at.At.AddDate(0, 0, -1)
	}
	found, err := client.UIDSearch(want, nil).Wait()
	if err != nil {
		return at, fmt.Errorf("look for new mail: %w", err)
	}
	for _, uid := range found.AllUIDs() {
		if uid <= at.UID { // n:* has the last one even if that is before n
			continue
		}
		next, err := c.one(ctx, client, at, uid)
		if err != nil {
			return at, err
		}
		at = next
	}
	return at, nil
}

// one reports one mail.
func (c *channel) one(ctx context.Context, client *imapclient.Client, at cursor, uid imap.UID) (cursor, error) {
	about, err := client.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{
		UID: true, RFC822Size: true, InternalDate: true,
	}).Collect()
	if err != nil {
		return at, fmt.Errorf("read mail %d: %w", uid, err)
	}
	at.UID = uid
	if len(about) == 0 { // deleted meanwhile
		return at, c.move(ctx, at)
	}
	at.At = about[0].InternalDate
	section := &imap.FetchItemBodySection{Peek: true}
	tooLarge := about[0].RFC822Size > largest
	if tooLarge {
		section.Specifier = imap.PartSpecifierHeader
	}
	got, err := client.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{
		UID: true, BodySection: []*imap.FetchItemBodySection{section},
	}).Collect()
	if err != nil {
		return at, fmt.Errorf("read mail %d: %w", uid, err)
	}
	if len(got) == 0 {
		return at, c.move(ctx, at)
	}
	m, err := c.read(ctx, bytes.NewReader(got[0].FindBodySection(section)))
	if skip := (*skipError)(nil); errors.As(err, &skip) {
		c.kernel.Log().Info("left a mail alone", "uid", uid, "why", err)
		return at, c.move(ctx, at)
	}
	if err != nil {
		return at, err
	}
	if tooLarge {
		m.message.Text += fmt.Sprintf("\n(The mail has %d MB and was not read: at most %d MB are.)",
			about[0].RFC822Size>>20, largest>>20)
	}
	if m.key == "" { // without a Message-ID
		m.key = fmt.Sprintf("%d/%d", at.Validity, uid)
	}
	if err := c.kernel.Receive(ctx, m.message, m.key, at.put(), m.thread.put()); err != nil &&
		!errors.Is(err, contract.ErrConflict) {
		return at, err
	}
	seen := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Flags: []imap.Flag{imap.FlagSeen}, Silent: true}
	if err := client.Store(imap.UIDSetNum(uid), seen, nil).Close(); err != nil {
		c.kernel.Log().Warn("a mail was read, but the server does not mark it as read", "error", err)
	}
	return at, nil
}
