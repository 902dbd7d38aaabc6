// Package consent stores what the owner of a home allowed dropped-in extensions beyond
// themselves: one file, consent.json.
//
// # Promises
//
// A decision is durable when Update returns, and a crash leaves the old file or the new
// one. Several processes may update it. A file that is damaged allows nothing and is never
// overwritten. The last allowed manifest of an extension is kept, so that it goes on with
// its permissions while a newer one waits for a decision.
package consent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/manifests"
)

const (
	fileName   = "consent.json"
	markerName = ".consent"
	version    = 1
	maxSize    = 64 << 20
)

// Decision is what the owner decided about one extension.
type Decision struct {
	Allowed manifests.Request `json:"allowed,omitempty"`
	// Tools: the default agent may use its tools.
	Tools bool `json:"tools,omitempty"`
	// Manifest is the text of the last one that was allowed; empty: none was.
	Manifest string `json:"manifest,omitempty"`
	// Wants are the tools that it described last and that are not allowed, as it describes them.
	Wants manifests.Request `json:"wants,omitempty"`
	// Refused and Asked are codes of questions.
	Refused string `json:"refused,omitempty"`
	Asked   string `json:"asked,omitempty"`
	// Unanswered is how often the owner was asked since they decided last.
	Unanswered int `json:"unanswered,omitempty"`

	By string    `json:"by,omitempty"`
	At time.Time `json:"at,omitzero"`
}

// Allow returns the decision after more was allowed. Until the extension runs with it, what
// was allowed before stays allowed.
func (d Decision) Allow(asks manifests.Request) Decision {
	d.Allowed = d.Allowed.With(asks)
	d.Wants, d.Refused, d.Unanswered = d.Allowed.Beyond(d.Wants), "", 0
	return d
}

// Settle ends what was allowed beyond a manifest. Tools stay allowed.
func (d Decision) Settle(asks manifests.Request) Decision {
	d.Allowed = asks.With(d.Allowed.Offers())
	return d
}

// Decisions are those of a home, by extension.
type Decisions map[string]Decision

// State of an extension.
type State string

// States. An extension that asks for nothing is allowed.
const (
	Asks    State = "asks"
	Allowed State = "allowed"
	Refused State = "refused"
)

// Judge returns the state of an extension that asks for this.
func (d Decisions) Judge(id string, asks manifests.Request) State {
	switch {
	case d[id].Allowed.Covers(asks):
		return Allowed
	case d[id].Refused == Code(id, asks):
		return Refused
	}
	return Asks
}

// Code identifies a question about an extension. It is short enough for the command of a
// button.
func Code(id string, asks manifests.Request) string {
	sum := sha256.Sum256([]byte(id + " " + asks.Hash()))
	return hex.EncodeToString(sum[:6])
}

// content is the content of the file.
type content struct {
	Version    int       `json:"version"`
	Extensions Decisions `json:"extensions"`
}

// File is the path of the file of a home.
func File(h *config.Home) string { return filepath.Join(h.Path(), fileName) }

// ErrNone means that nothing was ever decided on the home.
var ErrNone = errors.New("the home has no decisions yet")

// Read returns the decisions of a home. Without any it returns ErrNone.
func Read(h *config.Home) (Decisions, error) {
	text, err := read(File(h))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(marker(h)); err == nil { // it was deleted: everything is asked again
			return Decisions{}, nil
		}
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", File(h), err)
	}
	d, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; restore it from a backup, or delete it to be asked again", File(h), err)
	}
	return d, nil
}

// read reads a regular file within bounds.
func read(path string) ([]byte, error) {
	f, err := filewatch.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("longer than %d bytes", maxSize)
	}
	return text, err
}

func parse(text []byte) (Decisions, error) {
	c := content{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if d.More() {
		return nil, errors.New("damaged: more follows its end")
	}
	if c.Version != version {
		return nil, fmt.Errorf("version %d, but this program reads version %d", c.Version, version)
	}
	if c.Extensions == nil {
		c.Extensions = Decisions{}
	}
	return c.Extensions, nil
}

// marker shows that the home had decisions.
func marker(h *config.Home) string { return filepath.Join(h.Path(), markerName) }

// Update changes the decisions of a home. It writes nothing if change returns false or an
// error. On a home that has none yet it changes those of first (nil: an empty set), and
// writes them in any case.
func Update(h *config.Home, first func() Decisions, change func(Decisions) (bool, error)) (Decisions, error) {
	lock, err := os.Open(h.Path())
	if err != nil {
		return nil, fmt.Errorf("lock the decisions: %w", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock the decisions in %s: %w", h.Path(), err)
	}
	d, err := Read(h)
	none := errors.Is(err, ErrNone)
	if none {
		d, err = Decisions{}, nil
		if first != nil {
			d = first()
		}
	}
	if err != nil {
		return nil, err
	}
	changed, err := change(d)
	if err != nil || !changed && !none {
		return d, err
	}
	return d, write(h, d)
}

// write replaces the file. It is on disk when write returns.
func write(h *config.Home, d Decisions) error {
	text, err := json.MarshalIndent(content{version, d}, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", File(h), err)
	}
	if err := config.Replace(File(h), append(text, '\n')); err != nil {
		return err
	}
	mark, err := os.OpenFile(marker(h), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = mark.Close()
	}
	dir, errOpen := os.Open(h.Path())
	if err = errors.Join(err, errOpen); err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", File(h), err)
	}
	return nil
}

// Check returns what is wrong with the text of a file with decisions.
func Check(text []byte) error {
	_, err := parse(text)
	return err
}
