"""Models of sequences, written by hand: convolutions, recurrent loops, attention, pointers."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.torch_models.model import Call, Model, tokens

__all__ = ["MODELS"]


class WaveNet(nn.Module):
    """Dilated causal convolutions with gates, and skips."""

    def __init__(self) -> None:
        super().__init__()
        self.inp = nn.Conv1d(1, 8, 1)
        self.dilated = nn.ModuleList([nn.Conv1d(8, 16, 2, dilation=2**k) for k in range(3)])
        self.res = nn.ModuleList([nn.Conv1d(8, 8, 1) for _ in range(3)])
        self.skip = nn.ModuleList([nn.Conv1d(8, 8, 1) for _ in range(3)])
        self.end = nn.Conv1d(8, 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, total = self.inp(x), 0
        for k, (dilated, res, skip) in enumerate(zip(self.dilated, self.res, self.skip)):
            a, b = dilated(F.pad(x, (2**k, 0))).chunk(2, 1)
            z = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(z)
            x = x + res(z)
        return self.end(F.relu(total))


class TcnBlock(nn.Module):
    """Two causal convolutions of normalized weights, and a shortcut."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        pad = 2 * dilation
        self.a = weight_norm(nn.Conv1d(inputs, outputs, 3, padding=pad, dilation=dilation))
        self.b = weight_norm(nn.Conv1d(outputs, outputs, 3, padding=pad, dilation=dilation))
        self.short = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None
        self.chomp = pad

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.relu(self.a(x)[:, :, : -self.chomp].contiguous())
        h = F.relu(self.b(h)[:, :, : -self.chomp].contiguous())
        return F.relu(h + (x if self.short is None else self.short(x)))


class Seq2Seq(nn.Module):
    """A GRU that reads, and one that writes, looking back; it is told what it should have said."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.encoder = nn.GRU(8, 8, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(16, 12)
        self.cell = nn.GRUCell(8 + 16, 12)
        self.wq, self.wk, self.v = nn.Linear(12, 8), nn.Linear(16, 8), nn.Linear(8, 1)
        self.out = nn.Linear(12 + 16, 20)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        memory, last = self.encoder(self.embedding(source))
        h = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        logits = []
        for t in range(target.size(1)):
            scores = self.v(torch.tanh(self.wq(h)[:, None] + self.wk(memory))).squeeze(-1)
            scores = scores.masked_fill(source == 0, -1e9)
            context = torch.bmm(F.softmax(scores, 1).unsqueeze(1), memory).squeeze(1)
            h = self.cell(torch.cat([self.embedding(target[:, t]), context], 1), h)
            logits.append(self.out(torch.cat([h, context], 1)))
        return torch.stack(logits, dim=1)


class Greedy(Seq2Seq):
    """The same, that goes on from what it says itself."""

    def forward(self, source: torch.Tensor) -> torch.Tensor:  # pyright: ignore
        memory, last = self.encoder(self.embedding(source))
        h = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        word = torch.ones(source.size(0), dtype=torch.long)
        logits = []
        for _ in range(4):
            a = F.softmax(self.v(torch.tanh(self.wq(h)[:, None] + self.wk(memory))), 1)
            context = (a * memory).sum(1)
            h = self.cell(torch.cat([self.embedding(word), context], 1), h)
            logits.append(self.out(torch.cat([h, context], 1)))
            word = logits[-1].argmax(-1)
        return torch.stack(logits, 1)


class PackedTagger(nn.Module):
    """An LSTM over sequences of given lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(
            self.embedding(x), lengths, batch_first=True, enforce_sorted=False
        )
        out, _ = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.size(1))
        return self.head(out)


class Pointer(nn.Module):
    """A pointer network: each step points at one of the inputs, none twice."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.LSTM(2, 12, batch_first=True)
        self.cell = nn.LSTMCell(2, 12)
        self.w1, self.w2 = nn.Linear(12, 12, bias=False), nn.Linear(12, 12, bias=False)
        self.v = nn.Linear(12, 1, bias=False)
        self.start = nn.Parameter(torch.zeros(2))

    def forward(self, x: torch.Tensor) -> Any:
        b, n, _ = x.shape
        memory, (h, c) = self.encoder(x)
        h, c = h[0], c[0]
        step = self.start.unsqueeze(0).expand(b, -1)
        taken = torch.zeros(b, n, dtype=torch.bool)
        logs, picks = [], []
        for _ in range(n):
            h, c = self.cell(step, (h, c))
            u = self.v(torch.tanh(self.w1(memory) + self.w2(h).unsqueeze(1))).squeeze(-1)
            log_p = F.log_softmax(u.masked_fill(taken, -1e4), -1)
            pick = log_p.argmax(-1)
            taken = taken.scatter(1, pick[:, None], True)
            step = x.gather(1, pick[:, None, None].expand(-1, 1, 2)).squeeze(1)
            logs.append(log_p)
            picks.append(pick)
        return torch.stack(logs, 1), torch.stack(picks, 1)


class Bidaf(nn.Module):
    """Attention both ways between a context and a question."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.lstm = nn.LSTM(8, 6, batch_first=True, bidirectional=True)
        self.w = nn.Linear(36, 1, bias=False)
        self.model = nn.LSTM(48, 6, 2, batch_first=True, bidirectional=True, dropout=0.1)
        self.p1, self.p2 = nn.Linear(60, 1), nn.Linear(60, 1)

    def forward(self, context: torch.Tensor, query: torch.Tensor) -> Any:
        c, _ = self.lstm(self.embedding(context))
        q, _ = self.lstm(self.embedding(query))
        t, j = c.size(1), q.size(1)
        cc, qq = c.unsqueeze(2).expand(-1, -1, j, -1), q.unsqueeze(1).expand(-1, t, -1, -1)
        s = self.w(torch.cat([cc, qq, cc * qq], -1)).squeeze(-1)
        s = s.masked_fill((query == 0)[:, None], -1e30)
        c2q = torch.softmax(s, -1) @ q
        q2c = (torch.softmax(s.max(-1)[0], -1).unsqueeze(1) @ c).repeat(1, t, 1)
        g = torch.cat([c, c2q, c * c2q, c * q2c], -1)
        m = torch.cat([g, self.model(g)[0]], -1)
        return self.p1(m).squeeze(-1), self.p2(m).squeeze(-1)


class TextCnn(nn.Module):
    """Convolutions of several widths over words, and the largest of each."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 8)
        self.convs = nn.ModuleList([nn.Conv2d(1, 6, (k, 8)) for k in (2, 3, 4)])
        self.fc = nn.Linear(18, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embedding(x).unsqueeze(1)
        parts = [F.relu(conv(h)).squeeze(3) for conv in self.convs]
        return self.fc(torch.cat([F.max_pool1d(p, p.size(2)).squeeze(2) for p in parts], 1))


class CrfTagger(nn.Module):
    """A linear chain: the log likelihood of tags by the forward algorithm."""

    def __init__(self, tags: int = 4) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.out = nn.Linear(8, tags)
        self.start, self.end = nn.Parameter(torch.randn(tags)), nn.Parameter(torch.randn(tags))
        self.transitions = nn.Parameter(torch.randn(tags, tags))

    def forward(self, x: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        e = self.out(self.lstm(x)[0])
        b = torch.arange(x.size(0))
        score = self.start[tags[:, 0]] + e[b, 0, tags[:, 0]]
        alpha = self.start + e[:, 0]
        for i in range(1, x.size(1)):
            step = self.transitions[tags[:, i - 1], tags[:, i]] + e[b, i, tags[:, i]]
            score = score + step * mask[:, i]
            after = torch.logsumexp(alpha[:, :, None] + self.transitions + e[:, i, None], 1)
            alpha = torch.where(mask[:, i, None], after, alpha)
        last = tags.gather(1, mask.long().sum(1, keepdim=True) - 1).squeeze(1)
        return score + self.end[last] - torch.logsumexp(alpha + self.end, 1)


class RotaryGpt(nn.Module):
    """A small GPT with rotary positions, RMS norms, gated layers and tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.norm, self.final = nn.RMSNorm(16), nn.RMSNorm(16)
        self.qkv, self.proj = nn.Linear(16, 48, bias=False), nn.Linear(16, 16, bias=False)
        self.w1, self.w2 = nn.Linear(16, 64, bias=False), nn.Linear(32, 16, bias=False)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("freqs", 10000 ** (-torch.arange(4) / 4.0), persistent=False)

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(x.shape[2], dtype=x.dtype), self.freqs)
        turn = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], 4, 2))
        return torch.view_as_real(pairs * turn).flatten(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.embedding(x)
        b, t, _ = h.shape
        q, k, v = self.qkv(self.norm(h)).view(b, t, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        h = h + self.proj(a.transpose(1, 2).reshape(b, t, 16))
        gate, up = self.w1(h).chunk(2, -1)
        return self.head(self.final(h + self.w2(F.silu(gate) * up)))


class LinearRecurrence(nn.Module):
    """A diagonal state space, as a convolution with its response by FFT."""

    def __init__(self) -> None:
        super().__init__()
        self.log_dt = nn.Parameter(torch.rand(8) - 3)
        self.c = nn.Parameter(torch.randn(8, 4, 2))
        self.log_a = nn.Parameter(torch.log(0.5 * torch.ones(8, 4)))
        self.a_imag = nn.Parameter(math.pi * torch.arange(4).repeat(8, 1).float())
        self.d = nn.Parameter(torch.randn(8))

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        length = u.size(-1)
        dt, c = self.log_dt.exp(), torch.view_as_complex(self.c)
        a = -self.log_a.exp() + 1j * self.a_imag
        dt_a = a * dt.unsqueeze(-1)
        k = dt_a.unsqueeze(-1) * torch.arange(length)
        c = c * (torch.exp(dt_a) - 1.0) / a
        k = 2 * torch.einsum("hn,hnl->hl", c, torch.exp(k)).real
        f = torch.fft.rfft(u, n=2 * length) * torch.fft.rfft(k, n=2 * length)
        y = torch.fft.irfft(f, n=2 * length)[..., :length]
        return y + u * self.d.unsqueeze(-1)


class Ctc(nn.Module):
    """A recognizer with its loss of alignments."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv1d(4, 8, 3, padding=1), nn.Linear(8, 6)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        log_p = self.out(F.relu(self.conv(x)).transpose(1, 2)).log_softmax(-1).transpose(0, 1)
        n = torch.full((x.size(0),), 10), torch.full((x.size(0),), 3)
        return F.ctc_loss(log_p, y, *n, reduction="none")


def _pairs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(1, 20, (3, 6)), torch.randint(1, 20, (3, 4))


def _tagged() -> tuple[torch.Tensor, ...]:
    mask = torch.arange(5)[None] < torch.tensor([[5], [3], [4]])
    return torch.randn(3, 5, 6), torch.randint(0, 4, (3, 5)), mask


def _tcn() -> Call:
    module = nn.Sequential(TcnBlock(3, 8, 1), TcnBlock(8, 8, 2))
    return Call(module, (torch.randn(2, 3, 12),))


MODELS = [
    Model("sequences/wavenet", lambda: Call(WaveNet(), (torch.randn(2, 1, 16),))),
    Model("sequences/tcn", _tcn),
    Model("sequences/seq2seq", lambda: Call(Seq2Seq(), _pairs())),
    Model("sequences/seq2seq_greedy", lambda: Call(Greedy(), _pairs()[:1])),
    Model("sequences/packed_lstm", lambda: Call(PackedTagger(), (tokens(6), torch.tensor([4, 6])))),
    Model("sequences/pointer", lambda: Call(Pointer(), (torch.rand(3, 5, 2),))),
    Model("sequences/bidaf", lambda: Call(Bidaf(), (tokens(7, 3, 50), tokens(4, 3, 50)))),
    Model("sequences/textcnn", lambda: Call(TextCnn(), (tokens(),))),
    Model("sequences/crf", lambda: Call(CrfTagger(), _tagged())),
    Model("sequences/rotary_gpt", lambda: Call(RotaryGpt(), (tokens(6, 3, 50),))),
    Model("sequences/s4d", lambda: Call(LinearRecurrence(), (torch.randn(2, 8, 12),))),
    Model(
        "sequences/ctc", lambda: Call(Ctc(), (torch.randn(2, 4, 10), torch.randint(1, 6, (2, 3))))
    ),
]
