package terminal

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/picture"
)

// graphics is a protocol for images in a terminal.
type graphics int

const (
	noGraphics graphics = iota
	kittyGraphics
	itermGraphics
)

// graphicsOf returns the protocol of the terminal that the environment describes. A
// multiplexer passes none on.
func graphicsOf(env func(string) string) graphics {
	term := env("TERM")
	switch {
	case env("NO_COLOR") != "", term == "", term == "dumb":
	case env("TMUX") != "", env("STY") != "", strings.HasPrefix(term, "screen"), strings.HasPrefix(term, "tmux"):
	case term == "xterm-kitty", env("KITTY_WINDOW_ID") != "", term == "xterm-ghostty", env("TERM_PROGRAM") == "ghostty":
		return kittyGraphics
	case env("TERM_PROGRAM") == "iTerm.app", env("LC_TERMINAL") == "iTerm2", env("TERM_PROGRAM") == "WezTerm",
		env("TERM_PROGRAM") == "mintty":
		return itermGraphics
	}
	return noGraphics
}

const (
	// maxSide is the longer side of an image, in pixels.
	maxSide = 800
	// cellHeight is the height of a row, in pixels, if the terminal doesn't tell it.
	cellHeight = 20
	// kittyChunk is the most of an image that one sequence has.
	kittyChunk = 4096
)

// encode returns the sequence that shows a picture in at most a number of rows.
func (g graphics) encode(p picture.Picture, rows, cell int) (string, error) {
	height := min(rows, max(1, (p.Height+cell-1)/cell))
	var b strings.Builder
	switch g {
	case kittyGraphics:
		data, err := asPNG(p)
		if err != nil {
			return "", err
		}
		text := base64.StdEncoding.EncodeToString(data)
		keys := fmt.Sprintf("a=T,f=100,q=2,r=%d,", height) // q=2: the terminal answers nothing
		for len(text) > 0 {
			n, more := min(kittyChunk, len(text)), 1
			if n == len(text) {
				more = 0
			}
			fmt.Fprintf(&b, "\x1b_G%sm=%d;%s\x1b\\", keys, more, text[:n])
			text, keys = text[n:], ""
		}
	case itermGraphics:
		fmt.Fprintf(&b, "\x1b]1337;File=inline=1;size=%d;height=%d;preserveAspectRatio=1:%s\a", len(p.Data), height,
			base64.StdEncoding.EncodeToString(p.Data))
	}
	return b.String(), nil
}

func asPNG(p picture.Picture) ([]byte, error) {
	if p.MIME == "image/png" {
		return p.Data, nil
	}
	decoded, _, err := image.Decode(bytes.NewReader(p.Data))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = png.Encode(&b, decoded)
	return b.Bytes(), err
}

// rowHeight returns the height of a row of a terminal, in pixels.
func rowHeight(fd int) int {
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 || size.Ypixel < size.Row {
		return cellHeight
	}
	return int(size.Ypixel / size.Row)
}

// showing is an image that is being fetched to be shown. What can't be shown is only
// named.
type showing struct {
	bytes.Buffer
	show func(p picture.Picture)
}

func (s *showing) begin(contract.Attachment) error { return nil }

func (s *showing) end(err error) {
	if err != nil {
		return
	}
	p, err := picture.Prepare(context.Background(), maxSide, func(to io.Writer) error {
		_, err := s.WriteTo(to)
		return err
	})
	if err == nil {
		s.show(p)
	}
}

// imagesOf returns the images among files that can be shown.
func imagesOf(files []contract.Attachment) []contract.Attachment {
	return slices.DeleteFunc(slices.Clone(files), func(a contract.Attachment) bool {
		return a.Blob == "" || a.Kind != contract.KindImage && a.Kind != contract.KindSticker || a.Size > picture.MaxFile
	})
}
