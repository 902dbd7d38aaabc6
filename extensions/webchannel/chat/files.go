package chat

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/attachment"
)

// Files are the files of a visitor's lines, and those that they have uploaded for their
// next messages. A message may have only these, and has of its attachments only the Blob:
// name, type and size are those of the upload.
type Files interface {
	// Upload stores a file, whose type is that of its bytes. It is kept for a day, and from
	// then on if a message has it. Of the attachment, Kind (such as contract.KindVoice), Name
	// and MIME are what the sender claims.
	Upload(ctx context.Context, v door.Visitor, claimed contract.Attachment, from io.Reader) (contract.Attachment, error)
	// File returns the attachment with a blob. The error is contract.ErrNotFound unless a
	// line of the visitor has it, or they have uploaded it.
	File(ctx context.Context, v door.Visitor, blob string) (contract.Attachment, error)
	// WriteFile writes a file that File returned.
	WriteFile(ctx context.Context, v door.Visitor, blob string, to io.Writer) error
}

// uploadKept is how long an upload is kept that no message has.
const uploadKept = 24 * time.Hour

// upload is a file that no line has yet.
type upload struct {
	File contract.Attachment `json:"file"`
	At   time.Time           `json:"at"`
}

// MaxUpload is the size of the largest file, in bytes.
const MaxUpload = 50 << 20

// limited reads up to MaxUpload bytes.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.from.Read(b)
	if l.left -= int64(n); l.left < 0 {
		return 0, failf(contract.ErrTooLarge, "the file is larger than %d MB", MaxUpload>>20)
	}
	return n, err
}

// Upload implements Files.
func (c *Chat) Upload(
	ctx context.Context, v door.Visitor, claimed contract.Attachment, from io.Reader,
) (contract.Attachment, error) {
	to, err := c.conversation(ctx, v.User, "")
	if err != nil {
		return contract.Attachment{}, err
	}
	a, err := attachment.Store(ctx, to.k, claimed, &limited{from, MaxUpload})
	if err != nil {
		return contract.Attachment{}, err
	}
	now := c.now().UTC()
	effects := sdk.Effects{sdk.Put(uploadPrefix(v.User)+a.Blob, upload{a, now}).Keep(a.Blob)}
	earlier, _, err := to.k.Page(ctx, uploadPrefix(v.User), "", 0)
	if err != nil {
		return contract.Attachment{}, err
	}
	for _, e := range earlier {
		var u upload
		if err := e.Decode(&u); err == nil && now.Sub(u.At) > uploadKept && u.File.Blob != a.Blob {
			effects = append(effects, sdk.DeleteAt(e.Key, e.Version))
		}
	}
	_, err = to.k.Commit(ctx, effects...)
	if errors.Is(err, contract.ErrConflict) { // another upload has removed them
		_, err = to.k.Commit(ctx, effects[0])
	}
	return a, err
}

// File implements Files.
func (c *Chat) File(ctx context.Context, v door.Visitor, blob string) (contract.Attachment, error) {
	of, err := c.conversation(ctx, v.User, "")
	if err != nil {
		return contract.Attachment{}, err
	}
	return of.file(ctx, blob)
}

// file returns a file of the person.
func (p *person) file(ctx context.Context, blob string) (a contract.Attachment, err error) {
	missing := failf(contract.ErrNotFound, "the file is not there any more: attach it again")
	if b, err := hex.DecodeString(blob); err != nil || len(b) != 32 {
		return a, missing
	}
	v, err := p.k.Get(ctx, uploadPrefix(p.user)+blob)
	if err != nil {
		return a, err
	}
	if v.Version > 0 {
		var u upload
		err = v.Decode(&u)
		return u.File, err
	}
	prefix := filePrefix(p.user, blob)
	for after, more := "", true; more; {
		var page []sdk.Value
		if page, more, err = p.k.Page(ctx, prefix, after, pageLines); err != nil {
			return a, err
		}
		for _, v := range page {
			after = v.Key
			if p.has(v.Key[len(prefix):]) {
				err = v.Decode(&a)
				return a, err
			}
		}
	}
	return a, missing
}

// WriteFile implements Files.
func (c *Chat) WriteFile(ctx context.Context, v door.Visitor, blob string, to io.Writer) error {
	of, err := c.conversation(ctx, v.User, "")
	if err != nil {
		return err
	}
	if _, err := of.file(ctx, blob); err != nil {
		return err
	}
	_, err = of.k.GetBlob(ctx, blob, to)
	return err
}

// has reports whether a line was not deleted, by its conversation and number in a key.
func (p *person) has(line string) bool {
	name, number, _ := strings.Cut(line, "/")
	seq, err := strconv.ParseInt(number, 10, 64)
	p.mu.Lock()
	in := p.conversations[unescape(name)]
	p.mu.Unlock()
	return err == nil && in != nil && seq >= in.now().First
}
