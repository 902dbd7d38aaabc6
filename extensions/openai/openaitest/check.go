package openaitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

const invalidRequest = "invalid_request_error"

// apiError is an error of the API.
type apiError struct {
	status  int
	header  http.Header
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"`
	Code    any    `json:"code"`
}

func (e *apiError) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), e.header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": e})
}

func bad(param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, Type: invalidRequest, Param: param,
		Message: fmt.Sprintf(format, args...)}
}

// check parses the request and returns the error of the real API, if it would
// refuse the request.
func (s *Server) check(req *Request) *apiError {
	lean, pictures := withoutPictures(req.Raw)
	if err := json.Unmarshal(lean, req); err != nil {
		return bad("", "We could not parse the JSON body of your request: %v", err)
	}
	for i := range req.Messages {
		req.Messages[i].Content.take(pictures)
	}
	switch {
	case req.Model == "":
		return bad("model", "you must provide a model parameter")
	case !s.knows(req.Model):
		return &apiError{status: http.StatusNotFound, Type: invalidRequest, Code: "model_not_found",
			Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", req.Model)}
	case len(req.Messages) == 0:
		return bad("messages",
			"Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	case req.Tools != nil && len(req.Tools) == 0:
		return bad("tools", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty "+
			"array instead.")
	case len(req.Tools) > 128:
		return bad("tools", "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an "+
			"array with length %d instead.", len(req.Tools))
	case req.StreamOptions != nil && !req.Stream:
		return bad("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if e := checkMessages(req.Messages); e != nil {
		return e
	}
	if e := s.checkImages(req.Images()); e != nil {
		return e
	}
	return s.checkTools(req.Tools)
}

func (s *Server) knows(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models == nil || slices.Contains(s.models, model)
}

var roles = []string{"system", "assistant", "user", "function", "tool", "developer"}

// checkMessages checks each message, and that every call has its result.
func checkMessages(messages []Message) *apiError {
	var open []string // ids of calls without a result
	inCalls := false  // within the results of an assistant's calls
	for i, m := range messages {
		at := "messages.[" + strconv.Itoa(i) + "]"
		if !slices.Contains(roles, m.Role) {
			return bad(at+".role",
				"Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and "+
					"'developer'.", m.Role)
		}
		if m.Role == "tool" {
			k := slices.Index(open, m.ToolCallID)
			switch {
			case m.ToolCallID == "":
				return bad(at+".tool_call_id",
					"Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
			case !inCalls || k < 0:
				return bad(at+".role",
					"Invalid parameter: messages with role 'tool' must be a response to a preceding message with "+
						"'tool_calls'.")
			}
			open = slices.Delete(open, k, k+1)
		} else {
			if len(open) > 0 {
				return unanswered(at, open)
			}
			inCalls = false
		}
		if e := checkContent(at, m); e != nil {
			return e
		}
		for k, c := range m.ToolCalls {
			if e := checkCall(at+".tool_calls["+strconv.Itoa(k)+"]", c); e != nil {
				return e
			}
			open = append(open, c.ID)
			inCalls = true
		}
	}
	if len(open) > 0 {
		return unanswered("messages", open)
	}
	return nil
}

// checkImages checks the pictures of a request, all together and each.
func (s *Server) checkImages(images []modelapitest.Image) *apiError {
	s.mu.Lock()
	blind := s.blind
	s.mu.Unlock()
	size := 0
	for _, image := range images {
		size += len(image.Data)
		wrong := image.Wrong([]string{"png", "jpeg", "gif", "webp"}, 20<<20)
		switch {
		case blind:
			return bad("messages", "Invalid content type. image_url is only supported by certain models.")
		case wrong != "":
			return bad("messages", "You uploaded an unsupported image. Please make sure your image has of one of the "+
				"following formats: ['png', 'jpeg', 'gif', 'webp']. (%s)", wrong)
		}
	}
	if len(images) > 500 || size > 50<<20 {
		return bad("messages", "Too many images in request.")
	}
	return nil
}

func unanswered(at string, open []string) *apiError {
	return bad(at+".role",
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
			"The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
}

func checkContent(at string, m Message) *apiError {
	at += ".content"
	missing := !m.Content.present || m.Content.Null
	switch {
	case m.Content.unknown != "":
		return bad(at, "Invalid value: '%s'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', "+
			"'audio', and 'file'.", m.Content.unknown)
	case len(m.Content.Images) > 0 && m.Role != "user":
		return bad(at, "Invalid content. Image URLs are only allowed for messages with role 'user', but this message "+
			"with role '%s' contains an image URL.", m.Role)
	case m.Content.wrong != "":
		return bad(at, "Invalid type for '%s': expected one of a string or array of objects, but got a %s instead.", at,
			m.Content.wrong)
	case m.Content.present && m.Content.parts == 0:
		return bad(at, "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array "+
			"instead.", at)
	case m.Role != "assistant" && len(m.ToolCalls) > 0:
		return bad(at, "Invalid parameter: only messages with role 'assistant' can have 'tool_calls'.")
	case m.Role == "assistant" && m.ToolCalls != nil && len(m.ToolCalls) == 0:
		return bad(at, "Invalid 'tool_calls': empty array. Expected an array with minimum length 1, but got an empty "+
			"array instead.")
	case missing && m.Role == "assistant" && len(m.ToolCalls) > 0:
		return nil
	case missing && !m.Content.present:
		return bad(at, "Missing required parameter: '%s'.", at)
	case missing:
		return bad(at, "Invalid value for 'content': expected a string, got null.")
	}
	return nil
}

// functionName matches the function names that the API accepts.
var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func checkCall(at string, c ToolCall) *apiError {
	switch {
	case c.ID == "":
		return bad(at+".id", "Missing required parameter: '%s.id'.", at)
	case len(c.ID) > 40:
		return bad(at+".id",
			"Invalid '%s.id': string too long. Expected a string with maximum length 40, but got a string with "+
				"length %d instead.", at, len(c.ID))
	case c.Type != "function":
		return bad(at+".type", "Invalid value: '%s'. Supported values are: 'function'.", c.Type)
	case !functionName.MatchString(c.Function.Name):
		return bad(at+".function.name",
			"Invalid '%s.function.name': string does not match pattern. Expected a string that matches the pattern "+
				"'^[a-zA-Z0-9_-]+$'.", at)
	case c.Function.Arguments == nil:
		return bad(at+".function.arguments", "Missing required parameter: '%s.function.arguments'.", at)
	}
	return nil
}

func (s *Server) checkTools(tools []Tool) *apiError {
	for i, t := range tools {
		at := "tools[" + strconv.Itoa(i) + "]"
		switch {
		case t.Type != "function":
			return bad(at+".type", "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type)
		case !functionName.MatchString(t.Function.Name):
			return bad(at+".function.name",
				"Invalid '%s.function.name': string does not match pattern. Expected a string that matches the "+
					"pattern '^[a-zA-Z0-9_-]+$'.", at)
		}
		if err := s.checkSchema(t.Function.Parameters); err != nil {
			return bad(at+".function.parameters", "Invalid schema for function '%s': %v", t.Function.Name, err)
		}
	}
	return nil
}

// checkSchema caches its results, because requests repeat their tools.
func (s *Server) checkSchema(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil // a function without parameters
	}
	s.mu.Lock()
	err, known := s.schemas[string(raw)]
	s.mu.Unlock()
	if known {
		return err
	}
	var schema any
	if err = json.Unmarshal(raw, &schema); err == nil {
		err = objectSchema(schema)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.schemas) < 1000 {
		s.schemas[string(raw)] = err
	}
	return err
}

func objectSchema(schema any) error {
	m, ok := schema.(map[string]any)
	if !ok {
		return fmt.Errorf("%v is not of type 'object', 'boolean'", schema)
	}
	if m["type"] != "object" {
		kind := "None"
		if t, ok := m["type"].(string); ok {
			kind = t
		}
		return fmt.Errorf("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'", kind)
	}
	return innerSchema("", m)
}

var schemaTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func innerSchema(at string, schema any) error {
	if _, ok := schema.(bool); ok {
		return nil
	}
	m, ok := schema.(map[string]any)
	if !ok {
		return fmt.Errorf("in context=(%s), %v is not of type 'object', 'boolean'", at, schema)
	}
	if t, ok := m["type"].(string); ok && !slices.Contains(schemaTypes, t) {
		return fmt.Errorf("in context=(%s), '%s' is not valid under any of the given schemas", at, t)
	}
	if m["type"] == "array" && m["items"] == nil {
		return fmt.Errorf("in context=(%s), array schema missing items", at)
	}
	if items, ok := m["items"]; ok {
		if err := innerSchema(at+"/items", items); err != nil {
			return err
		}
	}
	if p, ok := m["properties"]; ok {
		properties, ok := p.(map[string]any)
		if !ok {
			return fmt.Errorf("in context=(%s), %v is not of type 'object'", at+"/properties", p)
		}
		for name, inner := range properties {
			if err := innerSchema(at+"/properties/"+name, inner); err != nil {
				return err
			}
		}
	}
	if r, ok := m["required"]; ok {
		names, ok := r.([]any)
		if !ok {
			return fmt.Errorf("in context=(%s), %v is not of type 'array'", at+"/required", r)
		}
		for _, n := range names {
			if _, ok := n.(string); !ok {
				return fmt.Errorf("in context=(%s), %v is not of type 'string'", at+"/required", n)
			}
		}
	}
	return nil
}
