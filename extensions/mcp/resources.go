package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// maxResources is how many resources one answer lists.
const maxResources = 200

var resourceSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
	`"uri":{"type":"string","description":"The resource to read. Without it, the resources are listed."},` +
	`"search":{"type":"string","description":"Lists only resources whose address or name has this text."}}}`)

// resourceTool is the tool that lists and reads the resources of the server. Reading
// changes nothing only if the owner says so: a server can do anything when it is asked.
func (s *server) resourceTool() offered {
	return offered{
		Name: fullName(s.ID, "read_resource"), Server: s.ID, Schema: resourceSchema, Idempotent: true,
		Description: "List the resources of a server, or read one. " + describe(s.Name, s.e.book.get(s.ID).Title),
		ReadOnly:    s.readOnly("read_resource"),
	}
}

func (s *server) readResource(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct{ URI, Search string }
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	return s.do(ctx, c, "reading", func(ctx context.Context, x *session) (sdk.ToolResult, error) {
		out := &content{e: s.e, server: s}
		if args.URI == "" {
			return sdk.ToolResult{Content: s.listResources(ctx, x, out, args.Search)}, ctx.Err()
		}
		r, err := x.ReadResource(ctx, &mcp.ReadResourceParams{URI: args.URI})
		if err != nil {
			return sdk.ToolResult{}, err
		}
		for _, part := range r.Contents {
			out.resource(ctx, part)
		}
		return sdk.ToolResult{Content: out.text.String(), Blobs: contract.BlobsOf(out.files)}, nil
	})
}

// listResources returns a line for each resource and each template of resources.
func (s *server) listResources(ctx context.Context, x *session, out *content, search string) string {
	n := 0
	line := func(uri, name, description string) bool {
		if !strings.Contains(strings.ToLower(uri+" "+name), strings.ToLower(search)) {
			return true
		}
		if n++; n > maxResources {
			out.write("There are more: search for them.")
			return false
		}
		about := cut(strings.Map(words.Printable, description), 200)
		out.write(strings.TrimSpace(fmt.Sprintf("%s: %s. %s", uri, cut(name, 100), about)))
		return true
	}
	for r, err := range x.Resources(ctx, nil) {
		if err != nil {
			out.write("The resources cannot be listed: " + err.Error())
			break
		}
		if !line(r.URI, r.Name, r.Description) {
			return out.text.String()
		}
	}
	for r, err := range x.ResourceTemplates(ctx, nil) {
		if err != nil || !line(r.URITemplate, r.Name, r.Description) {
			break
		}
	}
	if n == 0 {
		return "There are no such resources."
	}
	return out.text.String()
}
