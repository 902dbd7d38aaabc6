package memory

import (
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

// files returns the files of the conversation that references name; those of memories are
// among them once they were shown there.
func (m *memory) files(
	ctx context.Context, c sdk.ToolCall, references []string,
) (all []contract.Attachment, err error) {
	for _, reference := range references {
		a, err := contract.ParseReference(reference)
		if err != nil {
			return nil, err
		}
		b, err := m.k.FindBlob(ctx, nameFor(c, a))
		if err != nil {
			return nil, err
		}
		a.Blob, a.Size = b.Hash, b.Size
		if !slices.ContainsFunc(all, func(b contract.Attachment) bool { return a.Blob == b.Blob }) {
			all = append(all, a)
		}
	}
	return all, nil
}

// nameFor returns the name by which a caller finds a file. Only the command line, which sees
// everything, finds those that memory keeps.
func nameFor(c sdk.ToolCall, a contract.Attachment) string {
	if c.Agent == "" && c.Command == "" {
		return a.Blob
	}
	return a.InSession()
}

// references are the files of a memory as they stand in a conversation.
func references(i item.Item) (all []string) {
	for _, a := range i.Attachments {
		all = append(all, a.Reference())
	}
	return all
}

// withFiles is a result about memories. The session of an agent's call keeps their files, so
// that it can show and send them.
func withFiles(c sdk.ToolCall, out any, found []row) (sdk.ToolResult, error) {
	if c.Agent == "" || c.Command != "" {
		return sdk.JSON(out)
	}
	var all []contract.Attachment
	for _, r := range found {
		all = append(all, r.Attachments...)
	}
	hashes := contract.BlobsOf(all)
	result, err := sdk.JSON(out)
	result.Blobs = hashes[:min(len(hashes), contract.MaxBlobs)]
	return result, err
}
