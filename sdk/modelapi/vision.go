package modelapi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Image is a picture in a message of the user.
type Image struct {
	MIME string
	Data []byte
}

// seeing are patterns of the names of models that can see, without what comes before
// the last slash; blind are exceptions.
var (
	seeing = []string{
		"gpt-4o*", "chatgpt-4o*", "gpt-4-turbo*", "gpt-4.[1-9]*", "gpt-[5-9]*", "o1", "o1-20*", "o1-pro*", "o[3-9]*",
		"claude-*", "gemini-*", "gemma-3*", "gemma3*", "gemma-4*", "gemma4*", "pixtral*", "llama-4*", "llama4*",
		"mistral-small-3.[1-9]*", "mistral-small3.[1-9]*", "mistral-small-latest", "mistral-medium*", "mistral-large-3*",
		"grok-4*", "glm-4*v*", "minicpm-v*", "phi-4-multimodal*", "moondream*", "internvl*", "molmo*", "nova-lite*",
		"nova-pro*", "*llava*", "*-vl", "*-vl[-:_]*", "*[0-9]vl*", "*-vision*", "*-omni*",
	}
	blind = []string{
		"gpt-4o*audio*", "gpt-4o*transcribe*", "gpt-4o*tts*", "o3-mini*", "claude-2*", "claude-instant*", "gemma-3-1b*",
		"gemma-3-270m*", "gemma3:1b*", "gemma3:270m*", "gemini-embedding*", "grok-4-code*",
	}
)

// noVision in Config.Vision means that no model can see.
const noVision = "none"

// Sees reports whether a model can see images: as configured, else by its name.
func (c *Config) Sees(model string) bool {
	whole := strings.ToLower(model)
	name := whole[strings.LastIndexByte(whole, '/')+1:]
	matches := func(pattern string) bool {
		pattern = strings.ToLower(pattern)
		byName, _ := path.Match(pattern, name)
		byWhole, _ := path.Match(pattern, whole)
		return byName || byWhole || pattern == "*"
	}
	if len(c.Vision) > 0 {
		return !slices.Contains(c.Vision, noVision) && slices.ContainsFunc(c.Vision, matches)
	}
	return slices.ContainsFunc(seeing, matches) && !slices.ContainsFunc(blind, matches)
}

// Unseen returns a request in which sentences replace the images, for a model that
// cannot see.
func Unseen(r *sdk.CompleteRequest) *sdk.CompleteRequest {
	if !hasImages(r) {
		return r
	}
	out := &sdk.CompleteRequest{
		Model: r.GetModel(), Tools: r.GetTools(), MaxTokens: r.GetMaxTokens(), Agent: r.GetAgent(),
		Session: r.GetSession(), Purpose: r.GetPurpose(), Messages: slices.Clone(r.GetMessages()),
	}
	for i, m := range out.GetMessages() {
		n := len(m.GetImages())
		if n == 0 {
			continue
		}
		note := "[The user sent an image that this model cannot see. Say so.]"
		if n > 1 {
			note = fmt.Sprintf("[The user sent %d images that this model cannot see. Say so.]", n)
		}
		out.Messages[i] = &extensionv1.Message{
			Role: m.GetRole(), Content: strings.TrimSpace(m.GetContent() + "\n\n" + note), Calls: m.GetCalls(),
			CallId: m.GetCallId(), Name: m.GetName(),
		}
	}
	return out
}

func hasImages(r *sdk.CompleteRequest) bool {
	return slices.ContainsFunc(r.GetMessages(), func(m *extensionv1.Message) bool { return len(m.GetImages()) > 0 })
}

// imageBytes is how much longer images make the body of a request than text of as many
// tokens.
func imageBytes(r *sdk.CompleteRequest) (n int) {
	const tokens, bytesPerToken = 1600, 4 // of an image that is contract.MaxImageSide long
	for _, m := range r.GetMessages() {
		for _, i := range m.GetImages() {
			n += max(0, base64.StdEncoding.EncodedLen(len(i.GetData()))-tokens*bytesPerToken)
		}
	}
	return n
}

// refusesImages reports whether a failure may come from images in the request.
func refusesImages(err error) bool {
	f := (*Failure)(nil)
	return errors.As(err, &f) && (f.Kind == BadRequest || f.Kind == NoModel)
}
