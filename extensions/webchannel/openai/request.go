package openaiapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
)

// request is what a client asks, in either form of the protocol.
type request struct {
	model        string
	stream       bool
	usage        bool      // the stream ends with the usage
	said         []said    // all messages, in order
	user         string    // keeps a conversation; empty: none
	conversation string    // likewise, and comes first
	previous     *response // the response that it continues; nil: none
}

// said is one message as the client has it.
type said struct {
	role  string
	name  string // of a participant; may be empty
	text  string
	files []file
}

// file is a file that a client sends with a message.
type file struct {
	claimed contract.Attachment
	address string // https, or data:
	param   string // the field, for errors
}

// completionRequest is the body of POST /v1/chat/completions, without what is ignored.
type completionRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		Name      string          `json:"name"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	} `json:"messages"`
	Stream        bool `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	User           string          `json:"user"`
	Metadata       json.RawMessage `json:"metadata"`
	N              *int            `json:"n"`
	Logprobs       bool            `json:"logprobs"`
	TopLogprobs    int             `json:"top_logprobs"`
	LogitBias      map[string]any  `json:"logit_bias"`
	Tools          []any           `json:"tools"`
	Functions      []any           `json:"functions"`
	Stop           json.RawMessage `json:"stop"`
	ResponseFormat format          `json:"response_format"`
	Modalities     []string        `json:"modalities"`
	WebSearch      json.RawMessage `json:"web_search_options"`
}

// format is the form that an answer shall have.
type format struct {
	Type string `json:"type"`
}

const noTools = "Tools of clients aren't called: an agent has its own. Leave it out."

// read checks what a request asks for.
func (c *completionRequest) read() (q request, err error) {
	switch {
	case len(c.Tools) > 0:
		return q, unsupported("tools", noTools)
	case len(c.Functions) > 0:
		return q, unsupported("functions", noTools)
	case c.N != nil && *c.N != 1:
		return q, unsupported("n", "An agent gives one answer: n has to be 1.")
	case c.Logprobs:
		return q, unsupported("logprobs", "Agents report no probabilities.")
	case c.TopLogprobs > 0:
		return q, unsupported("top_logprobs", "Agents report no probabilities.")
	case len(c.LogitBias) > 0:
		return q, unsupported("logit_bias", "The choice of an agent's tokens can't be changed.")
	case given(c.Stop):
		return q, unsupported("stop", "An agent can't be stopped by a sequence of its answer.")
	case c.ResponseFormat.Type != "" && c.ResponseFormat.Type != "text":
		return q, unsupported("response_format", "Agents answer with text: ask for JSON in the message.")
	case given(c.WebSearch):
		return q, unsupported("web_search_options", "An agent searches with its own tools.")
	}
	for _, m := range c.Modalities {
		if m != "text" {
			return q, unsupported("modalities", "Agents answer with text here.")
		}
	}
	q = request{model: c.Model, stream: c.Stream, usage: c.StreamOptions.IncludeUsage, user: c.User}
	if q.conversation, err = named(c.Metadata); err != nil {
		return q, err
	}
	for i, m := range c.Messages {
		param := fmt.Sprintf("messages[%d].content", i)
		one := said{role: m.Role, name: m.Name}
		if one.text, one.files, err = readContent(param, m.Content); err != nil {
			return q, err
		}
		if given(m.ToolCalls) {
			one.text = strings.TrimSpace(one.text + "\n[calls tools: " + string(m.ToolCalls) + "]")
		}
		q.said = append(q.said, one)
	}
	return q, nil
}

// given reports whether a field says something.
func given(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "[]", "{}", `""`, "false":
		return false
	}
	return true
}

// named returns the conversation that metadata name.
func named(metadata json.RawMessage) (string, error) {
	var m struct {
		Conversation string `json:"conversation"`
	}
	if len(metadata) > 0 && json.Unmarshal(metadata, &m) != nil {
		return "", invalid("metadata.conversation", "metadata is an object, and the name of a conversation is a text.")
	}
	return m.Conversation, nil
}

// part is one part of a message, in either form of the protocol.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"`
	FileID   string          `json:"file_id"`
	FileData string          `json:"file_data"`
	FileURL  string          `json:"file_url"`
	Filename string          `json:"filename"`
	File     *struct {
		FileID   string `json:"file_id"`
		FileData string `json:"file_data"`
		Filename string `json:"filename"`
	} `json:"file"`
	InputAudio *struct {
		Data   string `json:"data"`
		Format string `json:"format"`
	} `json:"input_audio"`
}

// readContent reads the content of a message: a text, or parts.
func readContent(param string, raw json.RawMessage) (text string, files []file, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil, nil
	}
	if json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		return "", nil, invalid(param, "The content is a text, or a list of parts.")
	}
	var texts []string
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", param, i)
		switch p.Type {
		case "text", "input_text", "output_text":
			texts = append(texts, p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		default:
			f, err := p.file(at)
			if err != nil {
				return "", nil, err
			}
			files = append(files, f)
		}
	}
	return strings.Join(texts, "\n"), files, nil
}

// file reads a part that is a file.
func (p part) file(param string) (file, error) {
	name, data, id := p.Filename, p.FileData, p.FileID
	switch p.Type {
	case "image_url", "input_image":
		var image struct {
			URL string `json:"url"`
		}
		if len(p.ImageURL) > 0 && json.Unmarshal(p.ImageURL, &image.URL) != nil {
			_ = json.Unmarshal(p.ImageURL, &image)
		}
		if image.URL == "" {
			return file{}, invalid(param+".image_url", "An image needs its address: https, or data: with the image itself.")
		}
		return file{contract.Attachment{Kind: contract.KindImage}, image.URL, param + ".image_url"}, nil
	case "input_audio":
		if p.InputAudio == nil || p.InputAudio.Data == "" {
			return file{}, invalid(param+".input_audio", "The audio has no data.")
		}
		address := "data:audio/" + p.InputAudio.Format + ";base64," + p.InputAudio.Data
		return file{contract.Attachment{Kind: contract.KindVoice}, address, param + ".input_audio"}, nil
	case "file", "input_file":
		if p.File != nil {
			name, data, id = p.File.Filename, p.File.FileData, p.File.FileID
		}
		switch {
		case data == "" && p.FileURL != "":
			data = p.FileURL
		case data == "" && id != "":
			return file{}, unsupported(param+".file_id", "Files aren't stored for clients: send the file itself as file_data.")
		case data == "":
			return file{}, invalid(param+".file_data", "The file has no data.")
		}
		return file{contract.Attachment{Kind: contract.KindDocument, Name: name}, data, param + ".file_data"}, nil
	}
	return file{}, unsupported(param+".type", "Parts of type %q can't be used.", p.Type)
}
