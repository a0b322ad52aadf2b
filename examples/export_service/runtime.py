"""What MLServer runs for a request: an ONNX file. It is copied into the model's folder."""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri


class OnnxModel(MLModel):
    """A model whose inputs and outputs are those of an ONNX file."""

    async def load(self) -> bool:
        """Read the file that ``parameters.uri`` in ``model-settings.json`` names."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(await get_model_uri(self.settings), options)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Run the file on a batch, which the server may have joined from many requests."""
        fed = {given.name: NumpyCodec.decode_input(given) for given in payload.inputs}
        names = [taken.name for taken in self._session.get_outputs()]
        results = self._session.run(names, fed)
        outputs = [NumpyCodec.encode_output(n, x) for n, x in zip(names, results, strict=True)]
        return InferenceResponse(model_name=self.name, outputs=outputs)
