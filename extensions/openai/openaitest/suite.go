package openaitest

import (
	"strings"

	"github.com/switchboard-run/switchboard/sdk/modelapi/modelapitest"
)

var _ modelapitest.Fake = (*Server)(nil)

// Always answers all requests without a queued answer.
func (s *Server) Always(a Answer) { s.Handle(func(Request) Answer { return a }) }

// Blind makes the server refuse images, as a model that cannot see.
func (s *Server) Blind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blind = true
}

// Asked returns the kept requests in the words of the suite.
func (s *Server) Asked() []modelapitest.Asked {
	var all []modelapitest.Asked
	for _, r := range s.Requests() {
		a := modelapitest.Asked{
			Model: r.Model, Key: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "),
			MaxTokens: max(r.MaxTokens, r.MaxCompletionTokens), Images: r.Images(),
		}
		var roles, texts []string
		for _, m := range r.Messages {
			roles, texts = append(roles, m.Role), append(texts, m.Content.Text)
		}
		a.Roles, a.Text = strings.Join(roles, " "), strings.Join(texts, "\n")
		all = append(all, a)
	}
	return all
}
