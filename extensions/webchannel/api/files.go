package api

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

const filesPath = "/files"

// Upload is the request with a file. Its body is streamed, so huma doesn't read it. It is exported because huma
// reads the parameters.
type Upload struct {
	Name string `query:"name" maxLength:"255" doc:"Name of the file."`
	Kind string `query:"kind" maxLength:"40" doc:"voice for a voice message; absent: by the type of the file."`

	body io.Reader
}

// Resolve implements huma.Resolver.
func (u *Upload) Resolve(c huma.Context) []error {
	u.body = c.BodyReader()
	return nil
}

type uploadResponse struct{ Body Attachment }

func (a *api) files(h huma.API) {
	add(h, op{
		method: http.MethodPost, path: filesPath, id: "upload-file", tag: "messages", scope: door.ScopeMessages,
		summary: "Upload a file for a message", status: http.StatusCreated, long: true, raw: true,
		about: "The body is the file, of up to 50 MiB; its type is found in its bytes. Name the blob in `attachments` " +
			"of a message within a day. The same file again is the same blob, with or without a key.",
	}, func(ctx context.Context, v door.Visitor, in *Upload) (*uploadResponse, error) {
		x, err := a.Files.Upload(ctx, v, contract.Attachment{Name: in.Name, Kind: in.Kind}, in.body)
		if err != nil {
			return nil, err
		}
		return &uploadResponse{Attachment{x.Kind, x.Name, x.Blob, x.MIME, x.Size}}, nil
	})
}
