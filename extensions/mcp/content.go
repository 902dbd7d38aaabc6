package mcp

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract"
)

// content is what a server sent, as text with files beside it.
type content struct {
	e      *extension
	server *server
	text   strings.Builder
	full   bool
	files  []contract.Attachment
}

// write adds a paragraph, as long as there is room.
func (c *content) write(text string) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if c.full || text == "" {
		return
	}
	if c.text.Len() > 0 {
		c.text.WriteByte('\n')
	}
	if room := maxText - c.text.Len(); len(text) > room {
		text = strings.ToValidUTF8(text[:max(0, room)], "") +
			fmt.Sprintf("\n[cut: the server sent more than %d KiB of text]", maxText>>10)
		c.full = true
	}
	c.text.WriteString(text)
}

func (c *content) add(ctx context.Context, part mcp.Content) {
	switch p := part.(type) {
	case *mcp.TextContent:
		c.write(p.Text)
	case *mcp.ImageContent:
		c.file(ctx, contract.KindImage, p.MIMEType, "", p.Data)
	case *mcp.AudioContent:
		c.file(ctx, contract.KindAudio, p.MIMEType, "", p.Data)
	case *mcp.ResourceLink:
		c.write(strings.TrimSpace(fmt.Sprintf("[resource %s: %s] %s", p.URI, p.Name, p.Description)))
	case *mcp.EmbeddedResource:
		c.resource(ctx, p.Resource)
	default:
		c.write(fmt.Sprintf("[content of an unknown kind: %T]", part))
	}
}

func (c *content) resource(ctx context.Context, r *mcp.ResourceContents) {
	switch {
	case r == nil:
	case len(r.Blob) > 0:
		kind := contract.KindDocument
		if contract.IsImageType(r.MIMEType) {
			kind = contract.KindImage
		}
		c.file(ctx, kind, r.MIMEType, path.Base(r.URI), r.Blob)
	default:
		c.write(fmt.Sprintf("[resource %s]\n%s", r.URI, r.Text))
	}
}

// file stores a file and says its reference. What cannot be stored is said in words.
func (c *content) file(ctx context.Context, kind, mimeType, name string, data []byte) {
	if kind == contract.KindImage && !contract.IsImageType(mimeType) {
		kind = contract.KindDocument
	}
	if name == "" || name == "." || name == "/" {
		name = c.server.ID
		if all, err := mime.ExtensionsByType(mimeType); err == nil && len(all) > 0 {
			name += all[len(all)-1]
		}
	}
	a := contract.Attachment{Kind: kind, Name: cut(name, 100), MIME: mimeType, Size: int64(len(data))}
	if len(c.files) == maxFiles {
		c.write(a.Reference() + " (left out: too many files)")
		return
	}
	blob, err := c.e.k.PutBlob(ctx, bytes.NewReader(data))
	if err != nil {
		c.write(fmt.Sprintf("%s (it could not be stored: %v)", a.Reference(), err))
		return
	}
	a.Blob = blob.Hash
	c.files = append(c.files, a)
	c.write(a.Reference())
}
